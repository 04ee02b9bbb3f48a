// Does with nsqjs what Holdfast does with go-nsq, and prints one JSON line for each thing done.
// Arguments: host:port of the broker, host:port of its HTTP side, the secret that it asks for (none when it is empty).
'use strict'
const { once } = require('events')
const nsq = require('nsqjs')

const [, , nsqd, lookupd, secret] = process.argv
const auth = secret ? { authSecret: secret } : {}
const [host, port] = nsqd.split(':')
const report = (step, fields) => console.log(JSON.stringify({ step, ...fields }))
setTimeout(() => { console.error('timed out'); process.exit(1) }, 60000).unref()

async function open(options = auth) {
  const writer = new nsq.Writer(host, Number(port), options)
  writer.connect()
  await once(writer, 'ready')
  return writer
}

const call = (writer, method, ...args) => new Promise((resolve, reject) =>
  writer[method](...args, (err) => (err ? reject(err) : resolve())))

// Opens a reader; next() resolves with one message after another.
function listen(topic, options) {
  const reader = new nsq.Reader(topic, 'workers', { nsqdTCPAddresses: [nsqd], maxInFlight: 5, ...auth, ...options })
  const messages = []
  const waiting = []
  const errors = []
  reader.on('message', (m) => (waiting.length ? waiting.shift()(m) : messages.push(m)))
  reader.on('error', (err) => errors.push(err))
  reader.connect()
  return {
    reader,
    errors,
    next: () => (messages.length ? Promise.resolve(messages.shift()) : new Promise((resolve) => waiting.push(resolve))),
  }
}

// nsqjs sends an answer later than finish() returns, and close() drops what is not sent: wait for the broker's word.
async function settled(topic) {
  for (;;) {
    const response = await fetch(`http://${lookupd}/stats?format=json&topic=${topic}`)
    const { topics } = await response.json()
    const left = topics.flatMap((t) => t.channels).reduce((n, c) => n + c.depth + c.in_flight_count + c.deferred_count, 0)
    if (left === 0) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const code = (err) => String(err.message).split(' ')[0]

async function main() {
  const writer = await open()
  let box = listen('js.steps')

  await call(writer, 'publish', 'js.steps', 'one')
  let m = await box.next()
  report('publish and finish', { bodies: [m.body.toString()], attempts: m.attempts })
  m.finish()

  await call(writer, 'publish', 'js.steps', ['m1', 'm2', 'm3'])
  const many = [await box.next(), await box.next(), await box.next()]
  report('many', { bodies: many.map((x) => x.body.toString()).sort() })
  many.forEach((x) => x.finish())

  let since = Date.now()
  await call(writer, 'deferPublish', 'js.steps', ['later'], 200)
  m = await box.next()
  report('deferred', { bodies: [m.body.toString()], attempts: m.attempts, early: Date.now() - since < 200 })
  m.finish()

  await call(writer, 'publish', 'js.steps', 'again')
  since = Date.now()
  m = await box.next()
  m.requeue(0, false)
  m = await box.next()
  m.requeue(150, false)
  m = await box.next()
  report('requeue', { bodies: [m.body.toString()], attempts: m.attempts, early: Date.now() - since < 150 })
  m.finish()
  await settled('js.steps')
  box.reader.close()

  // A message timeout of a second: touched it stays, untouched it comes again.
  box = listen('js.slow', { messageTimeout: 1000, heartbeatInterval: 1 })
  await call(writer, 'publish', 'js.slow', 'touched')
  m = await box.next()
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setTimeout(resolve, 400))
    m.touch()
  }
  m.finish()
  report('touch', { bodies: [m.body.toString()], attempts: m.attempts })

  await call(writer, 'publish', 'js.slow', 'slow')
  const late = await box.next()
  m = await box.next()
  report('timeout', { bodies: [m.body.toString()], attempts: m.attempts })
  m.finish()
  await settled('js.slow')
  late.finish()
  while (box.errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  report('finish too late', { error: code(box.errors[0]) })
  box.reader.close()

  const bad = await open()
  bad.on('error', () => {})
  await call(bad, 'publish', 'bad$topic', 'x').catch((err) => report('bad topic', { error: code(err) }))

  if (secret) {
    const stranger = await open({})
    stranger.on('error', () => {})
    await call(stranger, 'publish', 'js.steps', 'x').catch((err) => report('no secret', { error: code(err) }))
  }

  await call(writer, 'publish', 'js.lookup', 'found')
  box = listen('js.lookup', { nsqdTCPAddresses: [], lookupdHTTPAddresses: [lookupd] })
  m = await box.next()
  report('lookup', { bodies: [m.body.toString()], attempts: m.attempts })
  m.finish()
  await settled('js.lookup')
  box.reader.close()
  writer.close()
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1) })
