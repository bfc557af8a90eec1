import { createHash, createHmac } from 'node:crypto'
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns'
import { request as httpRequest } from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP } from 'node:net'

import { withoutUndefined } from '../../shared/collections.ts'
import type { Notice, NoticeChannel, NoticeResult } from './notice.ts'
import { NoticeError } from './notice.ts'

/**
 * Options of {@link webhook}.
 *
 * @inline
 */
export interface WebhookOptions {
  /** An HTTPS URL. Redirects are not followed. */
  readonly url: string
  /**
   * The secret that signs each request, as Standard Webhooks defines it: `whsec_` and 24 to 64 bytes in base64. With several, each request
   * has a signature for each, so that the receiver can change its secret without missing a notice.
   */
  readonly secret: string | readonly string[]
  /** Whether requests have the arguments of the call and the reason of a decision. Default false: the receiver reads them with its own rights. */
  readonly includeArguments?: boolean
  /** The URL where a person decides, for example a page of the application. */
  readonly approvalUrl?: (approval: Notice['approval']) => string
  /** Whether the URL may be `http:` or have an address in a private network. For tests and receivers in one's own network. Default false. */
  readonly allowPrivateNetwork?: boolean
}

/**
 * A channel that posts each notice to a URL, as Standard Webhooks defines it. Status 2xx means received, 410 ends the channel, and
 * everything else is tried again.
 */
export function webhook(options: WebhookOptions): NoticeChannel {
  const { allowPrivateNetwork = false } = options
  const url = readUrl(options.url, allowPrivateNetwork)
  const keys = [options.secret].flat().map(readSecret)
  if (keys.length === 0) throw new TypeError('webhook: `secret` must have at least one secret.')
  return {
    address: createHash('sha256').update(url.href).digest('base64url'),
    send: async (notice, { at, signal }) => {
      const id = `msg_${notice.id.replaceAll('-', '_')}_${hash(notice.approval.id)}`
      const body = JSON.stringify(toBody(notice, options))
      const timestamp = Math.floor(at / 1_000)
      const signatures = keys.map((key) => sign(key, `${id}.${timestamp}.${body}`))
      const response = await post(url, {
        body,
        signal,
        allowPrivateNetwork,
        headers: {
          'webhook-id': id,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': signatures.join(' '),
        },
      })
      return readResponse(response, at)
    },
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function sign(key: Buffer, text: string): string {
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}

function readUrl(text: string, allowPrivateNetwork: boolean): URL {
  if (!URL.canParse(text)) throw new TypeError('webhook: `url` must be a URL.')
  const url = new URL(text)
  const isAllowed = url.protocol === 'https:' || (allowPrivateNetwork && url.protocol === 'http:')
  if (!isAllowed)
    throw new TypeError(
      'webhook: `url` must start with https://. For a receiver in your own network, set `allowPrivateNetwork`.',
    )
  if (url.username !== '' || url.password !== '')
    throw new TypeError('webhook: `url` must not contain a user name or a password.')
  return url
}

function readSecret(secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (secret.startsWith('whsec_') && key.length >= 24 && key.length <= 64) return key
  throw new TypeError('webhook: `secret` must be whsec_ followed by 24 to 64 bytes in base64.')
}

/** Returns the body. It has ids, so that the receiver reads the rest with its own rights, unless the option says otherwise. */
function toBody(notice: Notice, options: WebhookOptions): unknown {
  const { type, at, approval, to, by, reason, pace } = notice
  const { id, state, toolName, title, severity, kind, principalId, chatId, requestedAt } = approval
  const { deadline, deciders, step, args, preview } = approval
  return {
    type,
    timestamp: new Date(at).toISOString(),
    data: {
      approvalId: id,
      state,
      toolName,
      ...withoutUndefined({ title, severity, kind, step, to, by, pace }),
      principalId,
      chatId,
      requestedAt: new Date(requestedAt).toISOString(),
      deadline: new Date(deadline).toISOString(),
      deciders,
      ...withoutUndefined({ url: options.approvalUrl?.(approval) }),
      ...(options.includeArguments === true && { args, ...withoutUndefined({ preview, reason }) }),
    },
  }
}

function readResponse({ statusCode = 0, headers }: IncomingMessage, at: number): NoticeResult {
  const answer = `HTTP ${statusCode}`
  if (statusCode >= 200 && statusCode < 300) return { answer }
  if (statusCode === 410) return { answer, gone: true }
  const retryMs = readRetryAfter(headers['retry-after'], at)
  throw new NoticeError(`The webhook answered ${answer}.`, withoutUndefined({ retryMs }))
}

/** Returns the time until the next attempt that a receiver asks for, in ms. */
export function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

interface PostOptions {
  readonly body: string | Buffer
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly allowPrivateNetwork: boolean
}

/** Posts JSON, or what the headers say. Resolves with the head of the response, and does not read its body. */
export function post(
  url: URL,
  { body, headers, signal, allowPrivateNetwork }: PostOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: 'POST',
      signal,
      agent: false,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'adk-stream-protocol',
        ...headers,
      },
      ...(!allowPrivateNetwork && { lookup: lookupPublic }),
    }
    const host = url.hostname.replace(/^\[|\]$/g, '')
    // A host that is an address is not looked up.
    if (!allowPrivateNetwork && isIP(host) !== 0 && isPrivate(host)) {
      reject(privateError(host))
      return
    }
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const request = send(url, options, (response) => {
      resolve(response)
      response.destroy()
    })
    request.on('error', reject)
    request.end(body)
  })
}

type Lookup = NonNullable<RequestOptions['lookup']>

/** Looks up a host, and refuses it if one of its addresses is in a private network. The connection uses the addresses that were checked. */
const lookupPublic: Lookup = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: readonly LookupAddress[]) => {
    const [first] = addresses ?? []
    const refused = addresses?.find(({ address }) => isPrivate(address))
    if (error) callback(error, '')
    else if (refused || !first) callback(privateError(hostname), '')
    else if (options.all === true) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  })
}

function privateError(host: string): NoticeError {
  return new NoticeError(
    `The host ${host} is in a private network. To allow this, set \`allowPrivateNetwork\`.`,
  )
}

/** The addresses that are not public. */
const PRIVATE = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(network, prefix, 'ipv6')

function isPrivate(address: string): boolean {
  // BlockList compares an IPv4 address that is mapped into IPv6 with the IPv4 networks.
  return PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
