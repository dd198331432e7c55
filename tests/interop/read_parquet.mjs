// SPDX-License-Identifier: Apache-2.0
// node read_parquet.mjs NODE_MODULES FILE: the columns as hyparquet reads them, as JSON {name: [text or null]}.
// Times are the numbers that the file has, bytes are hexadecimal.
const [modules, path] = process.argv.slice(2)
const { asyncBufferFromFile, parquetMetadataAsync, parquetRead } = await import(`${modules}/hyparquet/src/node.js`)
const { compressors } = await import(`${modules}/hyparquet-compressors/src/index.js`)

function show(value) {
  if (value === null || value === undefined) return null
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return Object.is(value, -0) ? '-0' : String(value)
}

const keep = (value) => value
const parsers = {
  timestampFromMilliseconds: keep,
  timestampFromMicroseconds: keep,
  timestampFromNanoseconds: keep,
  dateFromDays: keep,
}
const file = await asyncBufferFromFile(path)
const metadata = await parquetMetadataAsync(file)
const columns = {}
await parquetRead({
  file,
  metadata,
  compressors,
  parsers,
  utf8: false,
  onComplete(rows) {
    metadata.schema.slice(1).forEach(({ name }, i) => {
      columns[name] = rows.map((row) => show(row[i]))
    })
  },
})
process.stdout.write(JSON.stringify(columns))
