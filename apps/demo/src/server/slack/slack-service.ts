import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

import { type NoticeChannel, slack } from 'adk-stream-protocol/notify'
import type { Authenticate, BridgeOptions } from 'adk-stream-protocol/server'
import { identify } from 'adk-stream-protocol-studio'
import { z } from 'zod'

import type { Languages } from '../languages.ts'
import { type Language, LANGUAGES } from '../../demo-info.ts'
import { renderSlack, SLACK_SCRIPT } from './slack-page.ts'

/** A workspace of the demo. It stands for Slack: it has the methods of Slack's API that cards need, signs clicks as Slack does, and needs no network. */
export interface SlackService {
  /** What the bridge sends, and how it receives clicks. */
  readonly notify: NonNullable<BridgeOptions['notify']>
  /** Responds to a request for the workspace. Returns false if it is for another part of the demo. */
  respond(request: IncomingMessage, response: ServerResponse): boolean
}

export interface SlackServiceOptions {
  /** The URL of the demo on this machine. */
  readonly baseUrl: string
  readonly authenticate: Authenticate
  readonly languages: Pick<Languages, 'of'>
  /** After how long a person is reminded, in ms. */
  readonly reminderMs: number
  /** A channel that tells the person as well, by its name. */
  readonly phone: readonly [name: string, channel: NoticeChannel]
  readonly onError: (error: unknown) => void
}

const PATH = '/slack'
const TEAM = 'T-DEMO'

/** Creates the workspace at `/slack`. Each browser is a member, and reads its own messages. They are in memory. */
export function createSlackService(options: SlackServiceOptions): SlackService {
  const { baseUrl, languages, reminderMs, phone } = options
  const secret = randomBytes(24).toString('hex')
  const workspace = new Workspace({ ...options, secret })
  const channels = LANGUAGES.map(
    (language) =>
      [
        nameOf(language),
        slack({
          token: workspace.tokenOf(language),
          signingSecret: secret,
          channel: 'general',
          // Only this workspace can sign, and it signs for the browser that clicks.
          principalOf: ({ teamId, userId }) => (teamId === TEAM ? { id: userId } : undefined),
          approvalUrl: () => `${baseUrl}/?view=approvals`,
          language,
          apiUrl: `${baseUrl}${PATH}/api/`,
        }),
      ] as const,
  )
  return {
    notify: {
      channels: Object.fromEntries([...channels, phone]),
      plan: ({ principalId: to }) => {
        const tell = nameOf(languages.of(to))
        return [
          { tell, to },
          { tell: phone[0], to },
          { tell, to, after: reminderMs },
        ]
      },
    },
    respond: (request, response) => workspace.respond(request, response),
  }
}

function nameOf(language: Language): string {
  return `slack-${language}`
}

/** A message of the bridge. */
export interface SlackMessage {
  /** The member who reads it, and the replies to it. */
  readonly channel: string
  readonly ts: string
  readonly language: Language
  readonly blocks: readonly SlackBlock[]
  readonly replies: readonly string[]
}

/** The form that asks for the reason of a denial. */
export interface SlackView {
  readonly language: Language
  readonly metadata: string
  readonly title: string
  readonly label: string
  readonly submit: string
  readonly close: string
}

const Text = z.object({ text: z.string() })
const Element = z.object({
  text: z.union([z.string(), Text]),
  action_id: z.string().optional(),
  value: z.string().optional(),
  style: z.string().optional(),
  url: z.string().optional(),
})
const Block = z.object({
  type: z.enum(['header', 'section', 'context', 'actions']),
  text: Text.optional(),
  elements: z.array(Element).optional(),
})
export type SlackBlock = z.infer<typeof Block>

const Post = z.object({
  channel: z.string(),
  text: z.string(),
  ts: z.string().optional(),
  thread_ts: z.string().optional(),
  user: z.string().optional(),
  blocks: z.array(Block).default([]),
})
const OpenView = z.object({
  trigger_id: z.string(),
  view: z.object({
    private_metadata: z.string(),
    title: Text,
    submit: Text,
    close: Text,
    blocks: z.array(z.object({ label: Text })).min(1),
  }),
})

const SCRIPT_HASH = `sha256-${createHash('sha256').update(SLACK_SCRIPT).digest('base64')}`

/** Only a script sends so many. */
const MAX_MESSAGES = 500
const MAX_BODY_BYTES = 500_000

class Workspace {
  readonly #options: SlackServiceOptions & { readonly secret: string }
  readonly #messages = new Map<string, SlackMessage>()
  readonly #views = new Map<string, SlackView>()
  /** What a member was told after a click, until they read it. */
  readonly #notes = new Map<string, string>()
  #count = 0

  constructor(options: SlackServiceOptions & { readonly secret: string }) {
    this.#options = options
  }

  tokenOf(language: Language): string {
    return `xoxb-${language}-${this.#options.secret}`
  }

  respond(request: IncomingMessage, response: ServerResponse): boolean {
    const path = request.url?.split('?', 1)[0] ?? ''
    if (path !== PATH && !path.startsWith(`${PATH}/`)) return false
    void this.#serve(`${request.method} ${path.slice(PATH.length)}`, request, response).catch(
      (error: unknown) => {
        this.#options.onError(error)
        if (!response.headersSent) response.writeHead(500)
        response.end()
      },
    )
    return true
  }

  async #serve(route: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (route.startsWith('POST /api/')) return this.#call(route.slice(10), request, response)
    const member = (await identify(this.#options.authenticate, request, response))?.id
    if (member === undefined) return void response.writeHead(401).end()
    if (route === 'GET ') return this.#show(member, response)
    const isOwnPage = request.headers['sec-fetch-site'] === 'same-origin'
    if (!isOwnPage || route !== 'POST /click') return void response.writeHead(404).end()
    await this.#click(member, new URLSearchParams(await readBody(request)))
    response.writeHead(303, { location: PATH, 'cache-control': 'no-store' }).end()
  }

  /** A method of the Web API. */
  async #call(method: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const token = request.headers.authorization?.replace(/^Bearer /, '')
    const language = LANGUAGES.find((each) => this.tokenOf(each) === token)
    const body: unknown = JSON.parse(await readBody(request))
    const answer = language
      ? this.#answer(method, body, language)
      : { ok: false, error: 'invalid_auth' }
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
    response.end(JSON.stringify(answer))
  }

  #answer(method: string, body: unknown, language: Language): object {
    if (method === 'views.open') {
      const { trigger_id, view } = OpenView.parse(body)
      this.#views.set(trigger_id, {
        language,
        metadata: view.private_metadata,
        title: view.title.text,
        label: view.blocks[0]?.label.text ?? '',
        submit: view.submit.text,
        close: view.close.text,
      })
      return { ok: true }
    }
    const { channel, text, blocks, thread_ts, user, ts = thread_ts } = Post.parse(body)
    const known = this.#messages.get(ts ?? '')
    if (method === 'chat.postEphemeral') this.#notes.set(user ?? channel, text)
    else if (method === 'chat.update' && known) this.#messages.set(known.ts, { ...known, blocks })
    else if (method === 'chat.postMessage' && known)
      this.#messages.set(known.ts, { ...known, replies: [...known.replies, text] })
    else if (method === 'chat.postMessage') return this.#post({ channel, language, blocks })
    else return { ok: false, error: 'message_not_found' }
    return { ok: true, channel, ts: ts ?? '0' }
  }

  #post(message: Pick<SlackMessage, 'channel' | 'language' | 'blocks'>): object {
    this.#count += 1
    const ts = `${Math.floor(Date.now() / 1_000)}.${String(this.#count).padStart(6, '0')}`
    this.#messages.set(ts, { ...message, ts, replies: [] })
    const [oldest] = this.#messages.keys()
    if (this.#messages.size > MAX_MESSAGES && oldest) this.#messages.delete(oldest)
    return { ok: true, channel: message.channel, ts }
  }

  #show(member: string, response: ServerResponse): void {
    const view = this.#views.get(member)
    const note = this.#notes.get(member)
    this.#notes.delete(member)
    const messages = [...this.#messages.values()].filter(({ channel }) => channel === member)
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': `default-src 'none'; script-src '${SCRIPT_HASH}'; connect-src 'self'; style-src 'unsafe-inline'; form-action 'self'`,
    })
    const language = this.#options.languages.of(member)
    response.end(renderSlack({ language, messages, view, note }))
  }

  /** Sends what Slack sends when a member clicks a button, or answers a form. */
  async #click(member: string, form: URLSearchParams): Promise<void> {
    const view = this.#views.get(member)
    this.#views.delete(member)
    const account = { user: { id: member }, team: { id: TEAM } }
    const action = form.get('action')
    const message = this.#messages.get(form.get('ts') ?? '')
    if (action === 'submit' && view) {
      const values = { reason: { reason: { value: form.get('reason') || null } } }
      const answered = { private_metadata: view.metadata, state: { values } }
      await this.#send(view.language, { type: 'view_submission', ...account, view: answered })
    } else if (action !== null && message?.channel === member) {
      const { ts, channel, language } = message
      await this.#send(language, {
        type: 'block_actions',
        ...account,
        channel: { id: channel },
        message: { ts },
        trigger_id: member,
        actions: [{ action_id: action, value: form.get('value') ?? '' }],
      })
    }
  }

  async #send(language: Language, payload: object): Promise<void> {
    const { baseUrl, secret } = this.#options
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const digest = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')
    await fetch(`${baseUrl}/channels/${nameOf(language)}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-slack-request-timestamp': timestamp,
        'x-slack-signature': `v0=${digest}`,
      },
      body,
    })
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request) {
    const bytes = Buffer.from(piece as Uint8Array)
    size += bytes.length
    if (size > MAX_BODY_BYTES) return '{}'
    pieces.push(bytes)
  }
  return Buffer.concat(pieces).toString()
}
