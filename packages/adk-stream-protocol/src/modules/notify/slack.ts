import { createHmac, timingSafeEqual } from 'node:crypto'

import * as z from 'zod'

import { shortenText } from '../../agent/timeline/timeline-text.ts'
import { shorten } from '../../agent/user-message.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { ChannelActions, ChannelReply, Notice, NoticeChannel, NoticeType } from './notice.ts'
import { NoticeError } from './notice.ts'

/**
 * Options of {@link slack}.
 *
 * @inline
 */
export interface SlackOptions {
  /** The bot token, `xoxb-…`, with the scope `chat:write`. */
  readonly token: string
  /** The signing secret of the app. */
  readonly signingSecret: string
  /** The id of the channel for entries of the plan without `to`. */
  readonly channel: string
  /** Returns who a Slack account is in your application, or undefined if it is nobody. The policy decides what they may decide. */
  readonly principalOf: (
    account: SlackAccount,
  ) => Principal | undefined | Promise<Principal | undefined>
  /** The URL where a person reads and decides an approval, for a button. */
  readonly approvalUrl?: (approval: Notice['approval']) => string
  /** Whether cards show the arguments of the call. Everyone in the channel can read them. Default true. */
  readonly includeArguments?: boolean
  /** Which approvals may be approved in Slack. Default: unless the severity is high. */
  readonly mayApprove?: NonNullable<NoticeChannel['mayApprove']>
  /** The URL of Slack's API. For tests. Default `https://slack.com/api/`. */
  readonly apiUrl?: string
}

/**
 * A person in Slack.
 *
 * @inline
 */
interface SlackAccount {
  readonly teamId: string
  readonly userId: string
}

const MAX_AGE_S = 300
/** Slack's limits. */
const MAX_SECTION = 3_000
const MAX_HEADER = 150
const MAX_METADATA = 3_000

/**
 * A channel that shows approvals as cards in Slack, with buttons to approve and to deny. A card is edited when its approval changes. In Slack,
 * set the request URL of the app's interactivity to `POST /channels/<name>` of the bridge.
 */
export function slack(options: SlackOptions): NoticeChannel {
  const call = createCall(options)
  return {
    ...withoutUndefined({ mayApprove: options.mayApprove }),
    send: async (notice, { reference, signal }) => {
      const text = toFallback(notice)
      const blocks = toBlocks(notice, options)
      const [channel, ts] = reference?.split(' ') ?? []
      if (channel === undefined || ts === undefined) {
        const to = notice.to ?? options.channel
        const posted = Posted.parse(
          await call('chat.postMessage', { channel: to, text, blocks }, signal),
        )
        return { reference: `${posted.channel} ${posted.ts}`, answer: 'posted' }
      }
      await call('chat.update', { channel, ts, text, blocks }, signal)
      if (notice.type !== 'approval.reminder') return { answer: 'updated' }
      const reminder = { channel, thread_ts: ts, reply_broadcast: true, text }
      await call('chat.postMessage', reminder, signal)
      return { answer: 'reminded' }
    },
    receive: async ({ headers, body }, actions) => {
      if (!isSigned(headers, body, options.signingSecret))
        throw new ProtocolError('unauthenticated', { message: 'The signature of Slack is wrong.' })
      const payload = Interaction.safeParse(readPayload(body))
      if (!payload.success)
        throw new ProtocolError('bad-request', { message: 'This is no interaction of a card.' })
      return handle(payload.data, { options, call, actions })
    },
  }
}

/** Whether a request was signed by Slack within the last minutes. */
function isSigned(headers: Headers, body: string, secret: string): boolean {
  const timestamp = headers.get('x-slack-request-timestamp') ?? ''
  const given = Buffer.from(headers.get('x-slack-signature') ?? '')
  const age = Math.abs(Date.now() / 1_000 - Number(timestamp))
  if (!/^\d+$/.test(timestamp) || age > MAX_AGE_S) return false
  const text = `v0:${timestamp}:${body}`
  const expected = Buffer.from(`v0=${createHmac('sha256', secret).update(text).digest('hex')}`)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function readPayload(body: string): unknown {
  try {
    return JSON.parse(new URLSearchParams(body).get('payload') ?? '')
  } catch {
    return undefined
  }
}

const Account = {
  user: z.object({ id: z.string().min(1) }),
  team: z.object({ id: z.string().min(1) }),
}

const Interaction = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('block_actions'),
    ...Account,
    channel: z.object({ id: z.string() }),
    trigger_id: z.string(),
    actions: z
      .array(z.object({ action_id: z.string(), value: z.string().max(500).optional() }))
      .min(1),
  }),
  z.object({
    type: z.literal('view_submission'),
    ...Account,
    view: z.object({
      private_metadata: z.string().max(MAX_METADATA),
      state: z.object({
        values: z.object({
          reason: z.object({ reason: z.object({ value: z.string().max(2_000).nullish() }) }),
        }),
      }),
    }),
  }),
])

const Posted = z.object({ channel: z.string(), ts: z.string() })
const Metadata = z.object({ approvalId: z.string(), channel: z.string() })

interface Handling {
  readonly options: SlackOptions
  readonly call: CallSlack
  readonly actions: ChannelActions
}

const DONE: ChannelReply = { status: 200 }

async function handle(
  payload: z.infer<typeof Interaction>,
  { options, call, actions }: Handling,
): Promise<ChannelReply> {
  const account = { teamId: payload.team.id, userId: payload.user.id }
  const decide = async (
    channel: string,
    decision: { readonly approvalId: string; readonly approved: boolean; readonly reason?: string },
  ): Promise<ChannelReply> => {
    const tell = async (text: string): Promise<ChannelReply> => {
      await call('chat.postEphemeral', { channel, user: account.userId, text })
      return DONE
    }
    const person = await options.principalOf(account)
    if (!person) return tell('Your Slack account is not known to this application.')
    try {
      await actions.decide(person, {
        ...decision,
        account: `${account.teamId}/${account.userId}`,
      })
      return DONE
    } catch (error) {
      if (error instanceof ProtocolError) return tell(error.message)
      throw error
    }
  }
  if (payload.type === 'view_submission') {
    const { approvalId, channel } = Metadata.parse(JSON.parse(payload.view.private_metadata))
    const reason = payload.view.state.values.reason.reason.value ?? undefined
    return decide(channel, { approvalId, approved: false, ...withoutUndefined({ reason }) })
  }
  const [action] = payload.actions
  const approvalId = action?.value ?? ''
  if (action?.action_id === APPROVE)
    return decide(payload.channel.id, { approvalId, approved: true })
  if (action?.action_id === DENY) {
    const metadata = JSON.stringify({ approvalId, channel: payload.channel.id })
    await call('views.open', { trigger_id: payload.trigger_id, view: denialView(metadata) })
  }
  return DONE
}

const APPROVE = 'adk-approve'
const DENY = 'adk-deny'

/** The form that asks why a person denies. */
function denialView(metadata: string): unknown {
  const element = {
    type: 'plain_text_input',
    action_id: 'reason',
    multiline: true,
    max_length: 2_000,
  }
  return {
    type: 'modal',
    private_metadata: metadata,
    title: plain('Deny'),
    submit: plain('Deny'),
    close: plain('Cancel'),
    blocks: [
      {
        type: 'input',
        block_id: 'reason',
        optional: true,
        label: plain('Reason'),
        element,
      },
    ],
  }
}

/** Text in which Slack finds no mentions, links and emoji. */
function plain(text: string): unknown {
  return { type: 'plain_text', text: shortenText(text, MAX_SECTION - 1), emoji: false }
}

const STATES: Readonly<Record<NoticeType, string>> = {
  'approval.requested': 'Needs approval',
  'approval.reminder': 'Still needs approval',
  'approval.voted': 'Approved by one of several people',
  'approval.withdrawn': 'An approval was withdrawn',
  'approval.approved': 'Approved',
  'approval.denied': 'Denied',
  'approval.expired': 'Expired',
  'approval.cancelled': 'Cancelled',
  'approval.succeeded': 'Approved and done',
  'approval.failed': 'Approved, but it failed',
  'approval.unknown': 'Approved, but it is not known whether it was done',
}

/** The text of notifications. Slack would find mentions in it. */
function toFallback({ type, approval }: Notice): string {
  return `${STATES[type]}: ${approval.title ?? approval.toolName}`
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .slice(0, MAX_SECTION)
}

function toBlocks(notice: Notice, options: SlackOptions): unknown[] {
  const { type, approval, by, reason } = notice
  const { id, title, toolName, args, state, severity, principalId } = approval
  const { includeArguments = true, approvalUrl, mayApprove = () => severity !== 'high' } = options
  const values = Object.entries(args).map(([name, value]) => `${name}: ${toValue(value)}`)
  const facts = [
    STATES[type] + (by === undefined ? '' : ` (${by})`),
    ...(reason === undefined ? [] : [`Reason: ${toValue(reason)}`]),
    `Requested by ${principalId}`,
    ...(severity === undefined ? [] : [`Severity: ${severity}`]),
  ]
  const url = approvalUrl?.(approval)
  const isOpen = state === 'requested'
  const buttons = [
    ...(isOpen && mayApprove(approval) ? [button('Approve', APPROVE, id, 'primary')] : []),
    ...(isOpen ? [button('Deny', DENY, id, 'danger')] : []),
    ...(url === undefined ? [] : [{ type: 'button', text: plain('Open'), url }]),
  ]
  return [
    { type: 'header', text: plain(shorten(title ?? toolName, MAX_HEADER, MAX_HEADER)) },
    ...(includeArguments && values.length > 0
      ? [{ type: 'section', text: plain(`${toolName}\n${values.join('\n')}`) }]
      : []),
    { type: 'context', elements: facts.map((fact) => plain(fact)) },
    ...(buttons.length > 0 ? [{ type: 'actions', elements: buttons }] : []),
  ]
}

function button(label: string, action: string, value: string, style: string): unknown {
  const confirm = action === APPROVE && {
    confirm: {
      title: plain('Approve this call?'),
      text: plain('It runs at once.'),
      confirm: plain('Approve'),
      deny: plain('Cancel'),
    },
  }
  return { type: 'button', text: plain(label), action_id: action, value, style, ...confirm }
}

/** Returns a value on one line, with characters that cannot be seen as their numbers. */
function toValue(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
}

type CallSlack = (method: string, body: unknown, signal?: AbortSignal) => Promise<unknown>

function createCall({ token, apiUrl = 'https://slack.com/api/' }: SlackOptions): CallSlack {
  return async (method, body, signal = AbortSignal.timeout(10_000)) => {
    const response = await fetch(new URL(method, apiUrl), {
      method: 'POST',
      redirect: 'error',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json; charset=utf-8',
      },
      body: JSON.stringify(body),
      signal,
    })
    const wait = Number(response.headers.get('retry-after'))
    if (response.status === 429)
      throw new NoticeError('Slack asks to wait.', { retryMs: Math.max(wait, 1) * 1_000 })
    const answer = Answer.safeParse(await response.json().catch(() => undefined))
    if (!answer.success) throw new NoticeError(`Slack answered HTTP ${response.status}.`)
    if (!answer.data.ok) throw new NoticeError(`Slack refused ${method}: ${answer.data.error}.`)
    return answer.data
  }
}

const Answer = z.looseObject({ ok: z.boolean(), error: z.string().optional() })
