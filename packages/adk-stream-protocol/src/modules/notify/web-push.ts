import { createHash } from 'node:crypto'

import * as z from 'zod'

import { shorten } from '../../agent/user-message.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import type {
  ChannelAddress,
  ChannelAddresses,
  Notice,
  NoticeChannel,
  NoticeType,
} from './notice.ts'
import { NoticeError } from './notice.ts'
import type { VapidKeys } from './push-message.ts'
import { createVapid, encryptPush, isUsable } from './push-message.ts'
import { post, readRetryAfter } from './webhook.ts'

/**
 * Options of {@link webPush}.
 *
 * @inline
 */
export interface WebPushOptions {
  /** The keys of your server, in base64url. Subscriptions of browsers belong to them: keep them. */
  readonly vapid: VapidKeys
  /** How push services reach you: `mailto:…` or an HTTPS URL. */
  readonly subject: string
  /** The path of the page where a person decides. Default: the notification opens the page that registered the service worker. */
  readonly approvalUrl?: (approval: Notice['approval']) => string
  /** Whether push services may be in a private network or use `http:`. For tests. Default false. */
  readonly allowPrivateNetwork?: boolean
}

/** What a service worker receives, as JSON. It has no arguments: whoever holds a locked phone can read it. */
interface PushText {
  readonly type: NoticeType
  readonly approvalId: string
  /** The title that the policy gives, or the name of the tool, as plain text. */
  readonly title: string
  readonly severity?: string
  readonly url?: string
}

const MAX_TITLE = 100
/** Who is told that nobody needs to decide any more. */
const ENDS: ReadonlySet<NoticeType> = new Set([
  'approval.approved',
  'approval.denied',
  'approval.expired',
  'approval.cancelled',
])
const ASKS: ReadonlySet<NoticeType> = new Set(['approval.requested', 'approval.reminder'])
/** How long the end of an approval is of interest. */
const END_TTL_S = 3_600
const MAX_TTL_S = 4 * 7 * 24 * 3_600

/**
 * A channel that sends notifications to the browsers of the people who decide, also when no page is open (Web Push). `to` in a plan is the id
 * of a principal. Default: each principal who may decide the step. A browser is added with `POST /channels/<name>/addresses`.
 */
export function webPush(options: WebPushOptions): NoticeChannel {
  const { vapid, subject, allowPrivateNetwork = false } = options
  if (!/^(?:mailto:.+@.+|https:\/\/.+)$/.test(subject))
    throw new TypeError('webPush: `subject` must be mailto: with an address, or an https: URL.')
  const authorize = createVapid(vapid, subject)

  /** Sends a message to one browser. Returns false if the browser has ended its subscription. */
  const push = async (
    subscription: Subscription,
    message: { readonly text: string; readonly headers: Readonly<Record<string, string>> },
    { at, signal }: { readonly at: number; readonly signal: AbortSignal },
  ): Promise<boolean> => {
    const endpoint = new URL(subscription.endpoint)
    const { statusCode = 0, headers } = await post(endpoint, {
      body: encryptPush(message.text, subscription.keys),
      signal,
      allowPrivateNetwork,
      headers: {
        ...message.headers,
        authorization: authorize(endpoint, at),
        'content-encoding': 'aes128gcm',
        'content-type': 'application/octet-stream',
      },
    })
    if (statusCode === 404 || statusCode === 410) return false
    if (statusCode >= 200 && statusCode < 300) return true
    const retryMs = readRetryAfter(headers['retry-after'], at)
    throw new NoticeError(`The push service answered HTTP ${statusCode}.`, {
      ...(retryMs !== undefined && { retryMs }),
    })
  }

  return {
    addresses: {
      info: { publicKey: vapid.publicKey },
      read: (given) => readSubscription(given, allowPrivateNetwork),
    },
    send: async (notice, { at, reference, signal, addresses }) => {
      const isAsking = ASKS.has(notice.type)
      if (!addresses || !(isAsking || ENDS.has(notice.type))) return { unsent: true }
      const { to, approval } = notice
      const before = reference === undefined ? [] : People.parse(JSON.parse(reference))
      const asked = to === undefined ? approval.deciders.principals : [to]
      const people = [...new Set(isAsking ? [...before, ...asked] : before)]
      const message = toMessage(notice, at, options)
      const sent = await sendToAll(isAsking ? asked : people, addresses, (address) =>
        push(readStored(address), message, { at, signal }),
      )
      return {
        answer: `${sent} browsers`,
        reference: JSON.stringify(people),
        ...(sent === 0 && { unsent: true }),
      }
    },
  }
}

/** Sends to all browsers of some people. Throws if one of them failed, after all were tried. Returns how many received it. */
async function sendToAll(
  people: readonly string[],
  addresses: ChannelAddresses,
  push: (address: ChannelAddress) => Promise<boolean>,
): Promise<number> {
  let sent = 0
  let failure: unknown
  for (const person of people)
    for (const address of await addresses.list(person))
      try {
        if (await push(address)) sent += 1
        else await addresses.remove(person, address.id)
      } catch (error) {
        failure ??= error
      }
  if (failure !== undefined) throw failure
  return sent
}

function toMessage(
  { type, approval }: Notice,
  at: number,
  { approvalUrl }: WebPushOptions,
): { readonly text: string; readonly headers: Readonly<Record<string, string>> } {
  const { id, title, toolName, severity, deadline } = approval
  const url = approvalUrl?.(approval)
  const text: PushText = {
    type,
    approvalId: id,
    title: shorten(toLiteral(title ?? toolName), MAX_TITLE, MAX_TITLE),
    ...(severity !== undefined && { severity }),
    ...(url !== undefined && { url }),
  }
  const left = Math.ceil((deadline - at) / 1_000)
  const ttl = ASKS.has(type) ? Math.min(Math.max(left, 0), MAX_TTL_S) : END_TTL_S
  return {
    text: JSON.stringify(text),
    headers: {
      ttl: String(ttl),
      urgency: severity === 'high' ? 'high' : 'normal',
      // A later message about the same approval replaces one that has not been delivered.
      topic: hash(id),
    },
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 32)
}

const People = z.array(z.string())

const Subscription = z.object({
  endpoint: z.string().max(2_000),
  keys: z.object({ p256dh: z.string().max(200), auth: z.string().max(100) }),
})

type Subscription = z.infer<typeof Subscription>

/** Returns a subscription as it is stored. Returns undefined if it is none. */
function readSubscription(given: unknown, allowHttp: boolean): ChannelAddress | undefined {
  const { data } = Subscription.safeParse(given)
  if (!data || !URL.canParse(data.endpoint) || !isUsable(data.keys)) return undefined
  const { protocol, username, password } = new URL(data.endpoint)
  const isSafe = protocol === 'https:' || (allowHttp && protocol === 'http:')
  if (!isSafe || username !== '' || password !== '') return undefined
  return { id: hash(data.endpoint), value: JSON.stringify(data) }
}

/** `readSubscription` wrote it. */
function readStored({ value }: ChannelAddress): Subscription {
  return Subscription.parse(JSON.parse(value))
}
