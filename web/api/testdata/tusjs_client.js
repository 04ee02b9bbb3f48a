// Sends the same bytes with tus-js-client in several ways, and prints one JSON line for each.
// Arguments: the endpoint, a token, and how many bytes.
'use strict'
const { Readable } = require('stream')
const tus = require('tus-js-client')

const [, , endpoint, token, size] = process.argv
const data = Buffer.alloc(Number(size), (i) => i)
for (let i = 0; i < data.length; i++) data[i] = (i * 31 + (i >> 8)) & 255
const report = (step, fields) => console.log(JSON.stringify({ step, ...fields }))
setTimeout(() => { console.error('timed out'); process.exit(1) }, 60000).unref()

const options = (more) => ({
  endpoint, headers: { Authorization: 'Bearer ' + token }, retryDelays: [0, 100, 1000],
  metadata: { filename: 'from-js.bin', filetype: 'application/octet-stream' }, chunkSize: 1 << 20, ...more,
})

// Starts an upload, and resolves when it ends; change may stop it before.
const send = (source, more, started) => new Promise((resolve, reject) => {
  const upload = new tus.Upload(source, options({ onError: reject, onSuccess: () => resolve(upload), ...more(() => upload, resolve) }))
  if (started) started(upload)
  upload.start()
})
const plain = (more) => () => more

async function main() {
  const whole = await send(data, plain({ chunkSize: Infinity }))
  report('whole', { url: whole.url })

  let parts = 0
  const cut = await send(data, (upload, resolve) => ({
    onChunkComplete: () => { if (++parts === 3) upload().abort().then(() => resolve(upload())) },
  }))
  let from = -1
  const rest = await send(data, plain({ uploadUrl: cut.url, onProgress: (sent) => { if (from < 0) from = sent } }))
  report('aborted and resumed', { url: rest.url, same: rest.url === cut.url, kept: from >= 3 << 20 })

  const again = await send(data, plain({ uploadUrl: rest.url }))
  report('resumed after the end', { url: again.url })

  const first = await send(data, plain({ uploadDataDuringCreation: true }))
  report('with its beginning', { url: first.url })

  const later = await send(Readable.from((function * () {
    for (let at = 0; at < data.length; at += 100000) yield data.subarray(at, at + 100000)
  })()), plain({ uploadLengthDeferred: true, uploadSize: null }))
  report('length later', { url: later.url })

  const override = await send(data, plain({ overridePatchMethod: true }))
  report('without PATCH', { url: override.url })

  let stopped = 0
  const given = await send(data, (upload, resolve) => ({
    onChunkComplete: () => { if (++stopped === 2) upload().abort(true).then(() => resolve(upload())) },
  }))
  report('terminated', { url: given.url })
}

main().catch((err) => { console.error(err); process.exit(1) })
