import type { AuthConfig, BaseAgent, BaseLlm, BaseTool, Context } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { z } from 'zod'

import type { SignInProvider } from '../../../src/server/index.ts'
import { openSqliteStore } from '../../../src/store/index.ts'
import { assistant } from '../../support/agents.ts'
import { serve, type ServeOptions, type TestServer } from '../../support/serve.ts'
import type { OAuthServer, OAuthServerOptions } from './oauth-server.ts'
import { startOAuthServer } from './oauth-server.ts'
import { Person } from './person.ts'

/** The public origin of the bridge, which is not that of the test's port. */
export const ORIGIN = 'http://localhost:4'

export function redirectUri(provider: string): string {
  return `${ORIGIN}/sign-in/${provider}/callback`
}

/** What a tool passes to `requestCredential`. */
export function authConfig(provider = 'example'): AuthConfig {
  return { credentialKey: provider, authScheme: { type: 'oauth2', flows: {} } }
}

export interface SignInBridgeOptions extends Omit<ServeOptions, 'agent' | 'agents'> {
  readonly oauth?: Partial<OAuthServerOptions>
  readonly providers?: Readonly<Record<string, SignInProvider>>
  readonly attemptMs?: number
  /** What the tool does with the token. Default: returns the account that it belongs to. */
  readonly use?: (token: string, context: Context) => unknown
  readonly tools?: readonly BaseTool[]
  /** Makes the agent with the tools. Default: an assistant. */
  readonly makeAgent?: (model: BaseLlm, tools: readonly BaseTool[]) => BaseAgent
  /** Whether the tool needs approval. Default false. */
  readonly requireConfirmation?: boolean
  /** An authorization server of another test bridge. */
  readonly sharedOAuth?: OAuthServer
}

/** A bridge whose tool needs a sign-in at a real authorization server. */
export class SignInBridge implements AsyncDisposable {
  readonly server: TestServer
  readonly oauth: OAuthServer
  /** The tokens that the tool received. */
  readonly tokens: string[]
  readonly logs: unknown[]
  readonly #close: () => Promise<void>

  private constructor(parts: {
    server: TestServer
    oauth: OAuthServer
    tokens: string[]
    logs: unknown[]
    close: () => Promise<void>
  }) {
    this.server = parts.server
    this.oauth = parts.oauth
    this.tokens = parts.tokens
    this.logs = parts.logs
    this.#close = parts.close
  }

  static async open(options: SignInBridgeOptions = {}): Promise<SignInBridge> {
    const { oauth: oauthOptions, providers, attemptMs, use, tools = [], sharedOAuth } = options
    const { store: given, ...rest } = options
    const names = ['example', ...Object.keys(providers ?? {})]
    const redirectUris = names.map(redirectUri)
    const oauth = sharedOAuth ?? (await startOAuthServer({ redirectUris, ...oauthOptions }))
    const tokens: string[] = []
    const logs: unknown[] = []
    const store = given ?? (await openSqliteStore({ path: ':memory:' }))
    const read = new FunctionTool({
      name: 'read_mail',
      description: 'Reads the mail of the person.',
      parameters: z.object({ provider: z.string().optional() }),
      requireConfirmation: options.requireConfirmation ?? false,
      execute: async ({ provider }, context) => {
        const config = authConfig(provider)
        const credential = context?.getAuthResponse(config)
        const token = credential?.oauth2?.accessToken ?? credential?.apiKey
        if (!context || token === undefined) {
          context?.requestCredential(config)
          return { status: 'needs a sign-in' }
        }
        tokens.push(token)
        if (use) return use(token, context)
        return { account: (await oauth.whoIs(token)) ?? 'nobody' }
      },
    })
    const { oauth: _oauth, providers: _providers, attemptMs: _ms, use: _use, ...bridge } = rest
    const { tools: _tools, sharedOAuth: _shared, makeAgent, ...others } = bridge
    const { requireConfirmation: _confirm, ...bridgeOptions } = others
    const server = await serve({
      store,
      authenticate: ({ headers }) => {
        const id = headers.get('x-api-key')
        return id === null ? undefined : { id }
      },
      log: (entry) => logs.push(entry),
      ...bridgeOptions,
      agent: (model) =>
        makeAgent?.(model, [read, ...tools]) ?? assistant(model, { tools: [read, ...tools] }),
      signIn: {
        baseUrl: ORIGIN,
        providers: { example: oauth.provider, ...providers },
        ...(attemptMs !== undefined && { attemptMs }),
      },
    })
    const close = async (): Promise<void> => {
      await server[Symbol.asyncDispose]()
      if (!given) await (await store).close()
      if (!sharedOAuth) await oauth[Symbol.asyncDispose]()
    }
    return new SignInBridge({ server, oauth, tokens, logs, close })
  }

  person(id = 'hanako'): SignInPerson {
    return new SignInPerson(id, this.server.url)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }
}

interface Question {
  readonly id: string
  readonly kind?: string
  readonly state?: string
  readonly signIn?: unknown
}

interface ShownMessage {
  readonly parts: readonly Readonly<Record<string, unknown>>[]
}

/** The fields of all responses that the tests read. */
interface Body {
  readonly approvals: readonly Question[]
  readonly approval: Question
  readonly history: readonly { readonly type: string }[]
  readonly messages: readonly ShownMessage[]
  readonly running: boolean
  readonly signIns: readonly unknown[]
  readonly url: string
  readonly error: { readonly code: string }
}

interface Json {
  readonly status: number
  readonly body: Partial<Body>
  readonly text: string
}

/** A person with a browser and an account at the application. */
export class SignInPerson extends Person {
  readonly #id: string

  constructor(id: string, url: string) {
    super({ [ORIGIN]: url })
    this.#id = id
  }

  async request(method: string, path: string, body?: unknown): Promise<Json> {
    const response = await this.fetch(`${ORIGIN}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': this.#id },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    // The tests check what they read.
    const json = isJson ? (JSON.parse(text) as Partial<Body>) : {}
    return { status: response.status, body: json, text }
  }

  /** Sends a message and reads the whole answer. */
  async say(text: string, chatId = 'chat-1'): Promise<string> {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
    const { text: stream } = await this.request('POST', '/stream', {
      id: chatId,
      messages: [message],
    })
    this.received.push(stream)
    return stream
  }

  /** Asks the agent to read mail, and returns the question that it leads to. */
  async ask(provider?: string, chatId = 'chat-1'): Promise<string> {
    await this.say(readMail(provider), chatId)
    return (await this.questions())[0]?.id ?? ''
  }

  /** Waits until the agent asks a question. */
  async untilAsked(): Promise<string> {
    for (;;) {
      const [question] = await this.questions()
      if (question) return question.id
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async questions(): Promise<readonly Question[]> {
    return (await this.request('GET', '/approvals')).body.approvals ?? []
  }

  /** Returns what the person is signed in to. */
  async signIns(): Promise<readonly unknown[]> {
    return (await this.request('GET', '/sign-ins')).body.signIns ?? ['an error']
  }

  /** Begins a sign-in and returns the URL of the provider. */
  async beginAt(id: string): Promise<URL> {
    return new URL((await this.begin(id)).body.url ?? '')
  }

  begin(id: string, body: unknown = {}): Promise<Json> {
    return this.request('POST', `/sign-ins/${id}`, body)
  }

  /** Opens the address of a question in the browser. */
  open(id: string): Promise<Response> {
    return this.fetch(`${ORIGIN}/sign-ins/${id}`, { headers: { 'x-api-key': this.#id } })
  }

  /** Signs in at the provider, up to the page of the callback. */
  async signIn(id: string, body: unknown = {}): Promise<{ status: number; text: string }> {
    const begun = await this.begin(id, body)
    return this.visit(begun.body.url ?? '')
  }

  /** Goes to the provider and returns the URL of the callback without opening it. */
  async authorize(id: string): Promise<string> {
    const begun = await this.begin(id)
    const { url } = await this.visit(begun.body.url ?? '', ({ origin }) => origin === ORIGIN)
    return url.href
  }

  /** Waits until an approval has a state. */
  async untilState(id: string, state: string): Promise<Json['body']> {
    for (;;) {
      const { body } = await this.request('GET', `/approvals/${id}`)
      if (body.approval?.state === state) return body
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Waits until the last message of the chat has this text, and returns its parts. */
  async untilSaid(text: string, chatId = 'chat-1'): Promise<ShownMessage['parts']> {
    for (;;) {
      const { body } = await this.request('GET', `/chats/${chatId}/messages`)
      const parts = body.messages?.at(-1)?.parts ?? []
      if (JSON.stringify(parts).includes(text) && body.running === false) return parts
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

export function readMail(provider?: string): string {
  const args = JSON.stringify(provider === undefined ? {} : { provider })
  return `[[call read_mail ${args}]][[then]][[say Done.]]`
}
