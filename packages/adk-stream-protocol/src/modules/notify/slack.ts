import { createHmac, timingSafeEqual } from 'node:crypto'

import * as z from 'zod'

import { shortenText } from '../../agent/timeline/timeline-text.ts'
import { shorten } from '../../agent/user-message.ts'
import { describeApproval } from '../../approvals/describe-approval.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import type { ChannelActions, ChannelReply, Notice, NoticeChannel } from './notice.ts'
import { isHarmless, NoticeError } from './notice.ts'
import type { ApprovalNotice, SlackLabels } from './slack-labels.ts'
import { SLACK_LABELS } from './slack-labels.ts'
import { runSlackSocket } from './slack-socket.ts'

/**
 * Options of {@link slack}.
 *
 * @inline
 */
export interface SlackOptions {
  /** The bot token, `xoxb-…`, with the scope `chat:write`. */
  readonly token: string
  /** The signing secret of the app, for clicks that Slack posts to `POST /channels/<name>`. Not needed with `appToken`. */
  readonly signingSecret?: string
  /**
   * The token of the app for Socket Mode, `xapp-…`, with the scope `connections:write`. Clicks then arrive over a socket that the bridge opens,
   * and no URL of the bridge needs to be public.
   */
  readonly appToken?: string
  /** The id of the channel for entries of the plan without `to`. */
  readonly channel: string
  /** Returns who a Slack account is in your application, or undefined if it is nobody. The policy decides what they may decide. */
  readonly principalOf: (
    account: SlackAccount,
  ) => Principal | undefined | Promise<Principal | undefined>
  /** The URL where a person reads and decides an approval, for a button. */
  readonly approvalUrl?: (approval: Notice['approval']) => string
  /** Whether cards show the arguments and the preview of the call. Everyone in the channel can read them. Default true. */
  readonly includeArguments?: boolean
  /** Which approvals may be approved in Slack. Default: unless the severity is high or a value could mislead. */
  readonly mayApprove?: NonNullable<NoticeChannel['mayApprove']>
  /** The language of cards. Default `en`. */
  readonly language?: 'en' | 'ja'
  /** The URL of Slack's API. For tests. Default `https://slack.com/api/`. */
  readonly apiUrl?: string
}

/**
 * A person in Slack.
 *
 * @inline
 */
interface SlackAccount {
  /**
   * The workspace of the person, also if they click in a channel that it shares with yours. The organisation, `E…`, if the app is installed
   * for all of its workspaces. Guests of a workspace have its id.
   */
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
 * set the request URL of the app's interactivity to `POST /channels/<name>` of the bridge, or turn on Socket Mode and set `appToken`.
 */
export function slack(options: SlackOptions): NoticeChannel {
  const { token, appToken, signingSecret } = options
  if (appToken === undefined && signingSecret === undefined)
    throw new TypeError('slack: set `signingSecret`, or `appToken` for Socket Mode.')
  const call = createCall(options, token)
  return {
    ...withoutUndefined({ mayApprove: options.mayApprove }),
    send: async (notice, { reference, signal }) => {
      const { type, pace, by = '' } = notice
      if (type === 'approver.fast') {
        const words = pace ? labelsOf(options).fast(toLiteral(by), pace) : ''
        const blocks = [{ type: 'section', text: plain(words) }]
        const to = notice.to ?? options.channel
        await call('chat.postMessage', { channel: to, text: escape(words), blocks }, signal)
        return { answer: 'posted' }
      }
      const text = toFallback({ ...notice, type }, labelsOf(options))
      const blocks = toBlocks({ ...notice, type }, options)
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
    ...(signingSecret !== undefined && {
      receive: async ({ headers, body }, actions) => {
        const isGenuine = isSigned(headers, body, signingSecret)
        if (!isGenuine || !isRecent(headers, await actions.now()))
          throw new ProtocolError('unauthenticated', { message: BAD_SIGNATURE })
        return handle(readPayload(body), { options, call, actions })
      },
    }),
    ...(appToken !== undefined && {
      listen: (actions, { signal, onError }) =>
        runSlackSocket({
          openConnection: async (until) =>
            createCall(options, appToken)('apps.connections.open', {}, until),
          handle: async (payload) => handle(payload, { options, call, actions }),
          signal,
          onError,
        }),
    }),
  }
}

const BAD_SIGNATURE = 'The signature of Slack is wrong.'

/** Whether a request was signed by Slack. */
function isSigned(headers: Headers, body: string, secret: string): boolean {
  const given = Buffer.from(headers.get('x-slack-signature') ?? '')
  const text = `v0:${headers.get(TIMESTAMP)}:${body}`
  const expected = Buffer.from(`v0=${createHmac('sha256', secret).update(text).digest('hex')}`)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const TIMESTAMP = 'x-slack-request-timestamp'

/** Whether a request was signed within the last minutes. */
function isRecent(headers: Headers, now: number): boolean {
  const timestamp = headers.get(TIMESTAMP) ?? ''
  return /^\d+$/.test(timestamp) && Math.abs(now / 1_000 - Number(timestamp)) <= MAX_AGE_S
}

function readPayload(body: string): unknown {
  try {
    return JSON.parse(new URLSearchParams(body).get('payload') ?? '')
  } catch {
    return undefined
  }
}

const Id = z.string().min(1)

const Account = {
  user: z.object({ id: Id, team_id: Id.optional() }),
  // The workspace where the person has clicked. Null if the app is installed for a whole organisation.
  team: z.object({ id: Id, enterprise_id: Id.nullish() }).nullish(),
  enterprise: z.object({ id: Id }).nullish(),
}

const Interaction = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('block_actions'),
    ...Account,
    channel: z.object({ id: z.string() }),
    message: z.object({ ts: z.string() }).optional(),
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

/** Handles a click on a button or a form that was sent. */
async function handle(given: unknown, { options, call, actions }: Handling): Promise<ChannelReply> {
  const { data: payload } = Interaction.safeParse(given)
  const account = payload && readAccount(payload)
  if (!account)
    throw new ProtocolError('bad-request', { message: 'This is no interaction of a card.' })
  /** Shows the card with the preview of now. */
  const showAgain = async (person: Principal, approvalId: string): Promise<void> => {
    if (payload.type !== 'block_actions' || !payload.message) return
    const approval = await actions.read(person, approvalId)
    if (approval?.state !== 'requested') return
    const notice = { type: 'approval.requested', approval } as const
    await call('chat.update', {
      channel: payload.channel.id,
      ts: payload.message.ts,
      text: toFallback(notice, labelsOf(options)),
      blocks: toBlocks(notice, options),
    })
  }
  const decide = async (
    channel: string,
    decision: Omit<Parameters<ChannelActions['decide']>[1], 'account'>,
  ): Promise<ChannelReply> => {
    const tell = async (text: string): Promise<ChannelReply> => {
      await call('chat.postEphemeral', { channel, user: account.userId, text })
      return DONE
    }
    const person = await options.principalOf(account)
    if (!person) return tell(labelsOf(options).unknownAccount)
    try {
      await actions.decide(person, {
        ...decision,
        account: `${account.teamId}/${account.userId}`,
      })
      return DONE
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      if (error.code === 'preview-changed') await showAgain(person, decision.approvalId)
      return tell(labelsOf(options).refusals[error.code] ?? error.message)
    }
  }
  if (payload.type === 'view_submission') {
    const { approvalId, channel } = Metadata.parse(JSON.parse(payload.view.private_metadata))
    const reason = payload.view.state.values.reason.reason.value ?? undefined
    return decide(channel, { approvalId, approved: false, ...withoutUndefined({ reason }) })
  }
  const [action] = payload.actions
  const [approvalId = '', preview] = action?.value?.split(' ') ?? []
  if (action?.action_id === APPROVE)
    return decide(payload.channel.id, {
      approvalId,
      approved: true,
      ...withoutUndefined({ preview }),
    })
  if (action?.action_id === DENY) {
    const metadata = JSON.stringify({ approvalId, channel: payload.channel.id })
    const view = denialView(metadata, labelsOf(options))
    await call('views.open', { trigger_id: payload.trigger_id, view })
  }
  return DONE
}

/** Returns who has clicked. A workspace where somebody of another one clicks, in a shared channel, does not count as theirs. */
function readAccount({
  user,
  team,
  enterprise,
}: Pick<z.infer<typeof Interaction>, 'user' | 'team' | 'enterprise'>): SlackAccount | undefined {
  const isOfTeam = [undefined, team?.id, team?.enterprise_id, enterprise?.id].includes(user.team_id)
  const teamId = team && isOfTeam ? team.id : user.team_id
  return teamId === undefined ? undefined : { teamId, userId: user.id }
}

const APPROVE = 'adk-approve'
const DENY = 'adk-deny'

/** The form that asks why a person denies. */
function denialView(metadata: string, labels: SlackLabels): unknown {
  const element = {
    type: 'plain_text_input',
    action_id: 'reason',
    multiline: true,
    max_length: 2_000,
  }
  return {
    type: 'modal',
    private_metadata: metadata,
    title: plain(labels.deny),
    submit: plain(labels.deny),
    close: plain(labels.cancel),
    blocks: [
      {
        type: 'input',
        block_id: 'reason',
        optional: true,
        label: plain(labels.reason),
        element,
      },
    ],
  }
}

/** Text in which Slack finds no mentions, links and emoji. */
function plain(text: string): unknown {
  return { type: 'plain_text', text: shortenText(text, MAX_SECTION - 1), emoji: false }
}

function labelsOf({ language = 'en' }: SlackOptions): SlackLabels {
  return SLACK_LABELS[language]
}

type ShownNotice = Pick<Notice, 'approval' | 'by' | 'reason'> & { readonly type: ApprovalNotice }

/** The text of notifications. Slack would find mentions in it. */
function toFallback({ type, approval }: ShownNotice, labels: SlackLabels): string {
  return escape(`${labels.states[type]}: ${toLiteral(approval.title ?? approval.toolName)}`)
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .slice(0, MAX_SECTION)
}

function toBlocks({ type, approval, by, reason }: ShownNotice, options: SlackOptions): unknown[] {
  const { id, title, toolName, state, severity, principalId } = approval
  const { includeArguments = true, approvalUrl, mayApprove = isHarmless } = options
  const labels = labelsOf(options)
  const preview = includeArguments ? approval.preview : undefined
  const words = describeApproval(approval, preview)
  // Slack cuts the header.
  const headline = words.headline === undefined ? [] : [words.headline]
  const details = [...headline, ...words.preview, toolName, ...words.args]
  const facts = [
    labels.states[type] + (by === undefined ? '' : ` (${toLiteral(by)})`),
    ...(reason === undefined ? [] : [`${labels.reason}: ${toLiteral(reason)}`]),
    labels.requestedBy(toLiteral(principalId)),
    ...(severity === undefined ? [] : [labels.severity(severity)]),
  ]
  const url = approvalUrl?.(approval)
  const isOpen = state === 'requested'
  const canApprove = isOpen && approval.preview?.blocked === undefined && mayApprove(approval)
  const named = preview ? `${id} ${preview.digest}` : id
  const buttons = [
    ...(canApprove ? [button(labels.approve, { action: APPROVE, value: named, labels })] : []),
    ...(isOpen ? [button(labels.deny, { action: DENY, value: id, labels })] : []),
    ...(url === undefined ? [] : [{ type: 'button', text: plain(labels.open), url }]),
  ]
  const header = toLiteral(preview?.headline ?? title ?? toolName)
  return [
    { type: 'header', text: plain(shorten(header, MAX_HEADER, MAX_HEADER)) },
    ...(includeArguments && details.length > 1
      ? [{ type: 'section', text: plain(details.join('\n')) }]
      : []),
    { type: 'context', elements: facts.map((fact) => plain(fact)) },
    ...(buttons.length > 0 ? [{ type: 'actions', elements: buttons }] : []),
  ]
}

function button(
  label: string,
  {
    action,
    value,
    labels,
  }: { readonly action: string; readonly value: string; readonly labels: SlackLabels },
): unknown {
  const isApproval = action === APPROVE
  const confirm = isApproval && {
    confirm: {
      title: plain(labels.approveQuestion),
      text: plain(labels.runsAtOnce),
      confirm: plain(labels.approve),
      deny: plain(labels.cancel),
    },
  }
  const style = isApproval ? 'primary' : 'danger'
  return { type: 'button', text: plain(label), action_id: action, value, style, ...confirm }
}

type CallSlack = (method: string, body: unknown, signal?: AbortSignal) => Promise<unknown>

function createCall({ apiUrl = 'https://slack.com/api/' }: SlackOptions, token: string): CallSlack {
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
