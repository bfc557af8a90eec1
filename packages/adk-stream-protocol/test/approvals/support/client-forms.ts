import { AG_UI_VERSIONS, AgUiClient } from '../../ag-ui/support/ag-ui-client.ts'
import { BidiClient } from '../../bidi/support/bidi-client.ts'
import type { NoticeChannel } from '../../../src/modules/notify/notice.ts'
import { ERROR_CODES } from '../../../src/protocol/error-codes.ts'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import { SocketClient } from '../../sockets/support/socket-client.ts'
import type { ChatPart } from '../../support/chat-probe.ts'
import { approvalOf, approvingClients, liveClient, type ApprovingClient } from './approving-chat.ts'
import type { Page } from './page.ts'
import type { TestBridge } from './test-bridge.ts'

/** A chat in which a call waits for hanako, as one kind of client shows it. */
interface AskedChat extends AsyncDisposable {
  readonly id: string
  /** Sends hanako's decision. Returns the code of the error that the client received. */
  readonly decide: (decision: FormDecision) => Promise<string | undefined>
}

export interface FormDecision {
  readonly approved: boolean
  /** The edited arguments. */
  readonly args?: Record<string, unknown> | undefined
}

export interface ClientForm {
  readonly name: string
  /** Sends the message that makes the call. */
  readonly ask: (context: FormContext, message: AskingMessage) => Promise<AskedChat>
}

interface FormContext {
  readonly testBridge: TestBridge
  readonly page: Page
}

interface AskingMessage {
  readonly chatId: string
  readonly text: string
}

/** Every way in which the decision of a person reaches the server. None of these clients names a preview by itself. */
export const CLIENT_FORMS = [
  ...approvingClients.map((client) => stockForm(`stock ${client.name} over SSE`, client)),
  stockForm('stock ai 7 over a socket', liveClient),
  formOverHttp('POST /approvals/:id', async ({ page }, { id }, { approved, args }) => {
    const { body } = await page.decide(id, { approved, ...(args && { args }) })
    return body.error?.code
  }),
  formOverHttp('several at once', async ({ testBridge }, { id }, decision) => {
    const { error, results } = await postJson(testBridge, '/approvals', {
      decisions: [{ id, ...decision }],
    })
    return (error ?? results?.[0]?.error)?.code
  }),
  formOverHttp('a channel', async ({ testBridge }, { id: approvalId }, { approved }) => {
    const { error } = await postJson(testBridge, '/channels/test', { approvalId, approved })
    return error?.code
  }),
  formOverHttp('a link', ({ testBridge }, { id }, decision) =>
    decideByLink(testBridge, id, decision),
  ),
  formOverHttp('the frame `decide`', async ({ testBridge }, { id, chatId }, decision) => {
    const headers = { 'x-api-key': 'hanako' }
    await using client = await SocketClient.open(testBridge.url, { headers })
    const { approved, args } = decision
    const given = { approvalId: id, approved, ...(args && { args }) }
    client.send({ type: 'decide', id: chatId, decisionId: 'd1', ...given })
    const { ok, code } = await client.nextOf('decided')
    return ok === true ? undefined : String(code)
  }),
  {
    name: 'a text frame',
    ask: async ({ testBridge, page }: FormContext, { chatId, text }: AskingMessage) => {
      const client = await BidiClient.open(testBridge.url, { chatId })
      client.say(text, chatId)
      await client.until(({ asked }) => asked.length > 0)
      const id = client.asked[0]?.approvalId ?? ''
      return {
        id,
        decide: async ({ approved }: FormDecision) => {
          const { length } = await page.history(id)
          client.confirm(id, approved)
          // The server answers with a refusal, or records the decision.
          for (;;) {
            const refusal = findRefusal(client)
            if (refusal !== undefined) return refusal
            if ((await page.history(id)).length > length) return undefined
          }
        },
        [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
      }
    },
  },
  formOverHttp(
    'the dialect `confirmation`',
    async ({ page }, { id, chatId, messageId }, { approved: confirmed, args }) => {
      const part = {
        type: 'tool-adk_request_confirmation',
        toolCallId: id,
        state: 'output-available',
        input: {},
        output: { confirmed },
      }
      const { body } = await page.post({
        id: chatId,
        dialect: 'confirmation',
        messages: [{ id: messageId, role: 'assistant', parts: [part] }],
        ...(args && { edits: { [id]: args } }),
      })
      return body.error?.code
    },
  ),
  ...AG_UI_VERSIONS.map((version) =>
    formOverHttp(`AG-UI, ${version.name}`, async ({ testBridge }, { id, chatId }, decision) => {
      const { approved, args } = decision
      const client = new AgUiClient(version, { url: testBridge.url, threadId: chatId })
      await client.answer({ [id]: { approved, ...(args && { editedArgs: args }) } })
      return client.refused[0]
    }),
  ),
  formOverHttp('a typed reply', async ({ page }, { chatId }, { approved }) => {
    const text = approved ? 'Yes.' : 'No.'
    const message = { id: `reply-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }
    const { body } = await page.post({ id: chatId, messages: [message] })
    return body.error?.code
  }),
] as const satisfies readonly ClientForm[]

/** A page with an unmodified `Chat` of the AI SDK. */
function stockForm<Name extends string>(name: Name, client: ApprovingClient) {
  return {
    name,
    ask: async ({ page }: FormContext, { chatId, text }: AskingMessage) => {
      const chat = await page.open(client, { id: chatId, autoSend: 'both' })
      await chat.send(text)
      const [id = ''] = chat.asked
      return {
        id,
        decide: async ({ approved, args }: FormDecision) => {
          if (args) chat.edit(id, args)
          await chat.decide(approved)
          if (chat.status !== 'error') return undefined
          return chat.refusal ?? findCode(chat.error?.message ?? '')
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
    },
  }
}

interface AskedCall {
  readonly id: string
  readonly chatId: string
  readonly messageId: string
}

/** A channel whose requests are decisions of hanako. */
export const TEST_CHANNEL: NoticeChannel = {
  send: async () => {},
  receive: async ({ body }, { decide }) => {
    const { approvalId, approved } = JSON.parse(body) as { approvalId: string; approved: boolean }
    await decide({ id: 'hanako' }, { approvalId, approved, account: 'hanako' })
    return { status: 200, body: {} }
  },
}

interface AnsweredPost {
  readonly error?: { readonly code: string }
  readonly results?: readonly { readonly error?: { readonly code: string } }[]
}

async function postJson(
  { url }: TestBridge,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<AnsweredPost> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': 'hanako', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await response.json()) as AnsweredPost
}

/** A client that decides with one request, about a call of a chat over SSE. */
function formOverHttp<Name extends string>(
  name: Name,
  decide: (
    context: FormContext,
    call: AskedCall,
    decision: FormDecision,
  ) => Promise<string | undefined>,
) {
  return {
    name,
    ask: async (context: FormContext, { chatId, text }: AskingMessage) => {
      const message = { id: `u-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }
      await context.page.post({ id: chatId, messages: [message] })
      const asked = (await context.page.messages(chatId)).at(-1)
      const id = asked?.parts.map((part: ChatPart) => approvalOf(part)?.id).find(Boolean) ?? ''
      const call = { id, chatId, messageId: asked?.id ?? '' }
      return {
        id,
        decide: (decision: FormDecision) => decide(context, call, decision),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
    },
  }
}

/** Decides by a link of hanako, in a browser without credentials. */
async function decideByLink(
  { url }: TestBridge,
  id: string,
  { approved, args }: FormDecision,
): Promise<string | undefined> {
  const post = async (path: string, body?: object, headers = {}) => {
    const response = await fetch(`${url}/approvals/${id}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body ?? {}),
    })
    return (await response.json()) as {
      readonly token?: string
      readonly key?: string
      readonly error?: { readonly code: string }
    }
  }
  const created = await post('links', {}, { 'x-api-key': 'hanako' })
  if (created.error) return created.error.code
  const { key } = await post('link/open', { token: created.token })
  const decided = await post('link/decide', { key, approved, ...(args && { args }) })
  return decided.error?.code
}

function findRefusal(client: BidiClient): string | undefined {
  const told = client.chunks.flatMap((chunk) =>
    chunk.type === 'data-refused' || chunk.type === 'error' ? [JSON.stringify(chunk)] : [],
  )
  return told[0] === undefined ? undefined : findCode(told[0])
}

/** The reason that a preview gives for a call that would fail. */
export const BLOCKED = 'Not enough money.'

/** Finds the code of an error by its sentence. */
function findCode(told: string): string {
  if (told.includes(BLOCKED)) return 'call-blocked'
  const found = ERROR_CODES.find(
    (code) => told.includes(`"${code}"`) || told.includes(new ProtocolError(code).message),
  )
  return found ?? told
}
