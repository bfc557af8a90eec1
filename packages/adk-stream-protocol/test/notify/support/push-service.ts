import { createDecipheriv, createECDH, createPublicKey, hkdfSync, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A message that a push service received for a browser. */
interface Pushed {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** The keys of a browser. */
export class Browser {
  readonly #keys = createECDH('prime256v1')
  readonly #auth = Buffer.from('an auth of 16 by')
  readonly subscription: {
    readonly endpoint: string
    readonly keys: { readonly p256dh: string; readonly auth: string }
  }

  constructor(endpoint: string) {
    const p256dh = this.#keys.generateKeys().toString('base64url')
    this.subscription = { endpoint, keys: { p256dh, auth: this.#auth.toString('base64url') } }
  }

  /** Decrypts a message as RFC 8291 says that a browser does. Throws if it is for another one, or was changed. */
  decrypt(body: Buffer): Record<string, unknown> {
    const [salt, sender] = [body.subarray(0, 16), body.subarray(21, 86)]
    const shared = this.#keys.computeSecret(sender)
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.#keys.getPublicKey(), sender])
    const key = Buffer.from(hkdfSync('sha256', shared, this.#auth, info, 32))
    const derive = (what: string, length: number): Buffer =>
      Buffer.from(hkdfSync('sha256', key, salt, `Content-Encoding: ${what}\0`, length))
    const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12))
    decipher.setAuthTag(body.subarray(-16))
    const text = Buffer.concat([decipher.update(body.subarray(86, -16)), decipher.final()])
    if (text.at(-1) !== 2) throw new Error('The record has no end.')
    return JSON.parse(text.subarray(0, -1).toString()) as Record<string, unknown>
  }
}

/** Creates the keys of a server. */
export function newVapid() {
  const keys = createECDH('prime256v1')
  const publicKey = keys.generateKeys().toString('base64url')
  // A key may begin with zeros, which Node leaves out.
  const privateKey = Buffer.from(keys.getPrivateKey('hex').padStart(64, '0'), 'hex')
  return { publicKey, privateKey: privateKey.toString('base64url') }
}

/** Starts a push service. `answer` says with which status it answers a path. */
export async function startPushService(answer: (path: string) => number = () => 201) {
  const pushed: Pushed[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const path = request.url ?? ''
      pushed.push({ path, headers: request.headers, body: Buffer.concat(parts) })
      response.writeHead(answer(path), { 'retry-after': '7' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    pushed,
    browser: (name: string) => new Browser(`${url}/${name}`),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns the claims of the token with which a server identifies itself. Throws if its signature is wrong. */
export function readVapid(authorization = ''): Record<string, unknown> {
  const [, token = '', key = ''] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? []
  const [header, claims = '', signature = ''] = token.split('.')
  const point = Buffer.from(key, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) =>
    half.toString('base64url'),
  )
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
  const signed = Buffer.from(`${header}.${claims}`)
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  if (!verify('sha256', signed, options, Buffer.from(signature, 'base64url')))
    throw new Error('The token is not signed with its key.')
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>
}
