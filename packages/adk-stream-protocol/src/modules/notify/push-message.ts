import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  hkdfSync,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto'

/** The keys of a browser's subscription, in base64url. */
export interface SubscriptionKeys {
  readonly p256dh: string
  readonly auth: string
}

/** The random values of an encrypted message. The example of RFC 8291 fixes them. */
export interface PushRandom {
  readonly salt: Buffer
  readonly privateKey: Buffer
}

/** The largest record that every push service takes. */
const RECORD_BYTES = 4_096
/** The length of a point of the curve. */
const POINT_BYTES = 65
const AUTH_BYTES = 16

/** Encrypts a text for one browser, as RFC 8291 defines it. */
export function encryptPush(
  text: string,
  { p256dh, auth }: SubscriptionKeys,
  { salt, privateKey }: PushRandom = { salt: randomBytes(16), privateKey: newPrivateKey() },
): Buffer {
  const receiver = decode(p256dh)
  const own = createECDH('prime256v1')
  own.setPrivateKey(privateKey)
  const ownPoint = own.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, ownPoint])
  const key = derive(own.computeSecret(receiver), { salt: decode(auth), info, length: 32 })
  const contentKey = derive(key, { salt, info: 'Content-Encoding: aes128gcm\0', length: 16 })
  const nonce = derive(key, { salt, info: 'Content-Encoding: nonce\0', length: 12 })
  const cipher = createCipheriv('aes-128-gcm', contentKey, nonce)
  // The last record of a message ends with 2 and its padding, which is empty.
  const encrypted = [
    cipher.update(Buffer.concat([Buffer.from(text), Buffer.of(2)])),
    cipher.final(),
  ]
  const recordSize = Buffer.alloc(4)
  recordSize.writeUInt32BE(RECORD_BYTES)
  const header = Buffer.concat([salt, recordSize, Buffer.of(POINT_BYTES), ownPoint])
  return Buffer.concat([header, ...encrypted, cipher.getAuthTag()])
}

/** Whether keys can be those of a browser. */
export function isUsable({ p256dh, auth }: SubscriptionKeys): boolean {
  const point = decode(p256dh)
  if (point.length !== POINT_BYTES || decode(auth).length !== AUTH_BYTES) return false
  try {
    const own = createECDH('prime256v1')
    own.generateKeys()
    // Throws if the point is not on the curve.
    own.computeSecret(point)
    return true
  } catch {
    return false
  }
}

/** The keys with which a server identifies itself to push services (VAPID, RFC 8292), in base64url. */
export interface VapidKeys {
  readonly publicKey: string
  readonly privateKey: string
}

/** Returns a function that creates the `authorization` of a request to a push service. Throws if the keys are not a pair. */
export function createVapid(
  { publicKey, privateKey }: VapidKeys,
  subject: string,
): (endpoint: URL, now: number) => string {
  const key = readKeyPair(publicKey, privateKey)
  return (endpoint, now) => {
    const claims = { aud: endpoint.origin, exp: Math.floor(now / 1_000) + TOKEN_S, sub: subject }
    const text = [{ typ: 'JWT', alg: 'ES256' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    return `vapid t=${text}.${signature.toString('base64url')}, k=${publicKey}`
  }
}

/** RFC 8292 allows 24 hours. */
const TOKEN_S = 12 * 3_600

function readKeyPair(publicKey: string, privateKey: string): KeyObject {
  const point = decode(publicKey)
  const scalar = decode(privateKey)
  const own = createECDH('prime256v1')
  if (scalar.length === 32) own.setPrivateKey(scalar)
  if (scalar.length !== 32 || !own.getPublicKey().equals(point))
    throw new TypeError('webPush: `vapid` must have the two keys of a pair, in base64url.')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) =>
    half.toString('base64url'),
  )
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '', d: privateKey }
  return createPrivateKey({ key: jwk, format: 'jwk' })
}

function newPrivateKey(): Buffer {
  const own = createECDH('prime256v1')
  own.generateKeys()
  return own.getPrivateKey()
}

interface Derivation {
  readonly salt: Buffer
  readonly info: Buffer | string
  readonly length: number
}

function derive(key: Buffer, { salt, info, length }: Derivation): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, info, length))
}

function decode(text: string): Buffer {
  return Buffer.from(text, 'base64url')
}
