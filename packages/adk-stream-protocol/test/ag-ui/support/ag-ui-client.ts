import { HttpAgent as Agent1 } from '@ag-ui/client'
import { HttpAgent as Agent0 } from '@ag-ui/client-0'
import { EventSchemas as Events1 } from '@ag-ui/core/schemas'
import { assert, vi } from 'vitest'

import { isRecord } from '../../../src/protocol/guards.ts'

/** What both versions of `HttpAgent` have in common. */
interface AnyAgent {
  readonly messages: readonly AgUiMessage[]
  readonly state: unknown
  readonly pendingInterrupts: readonly AgUiInterrupt[]
  addMessage(message: { id: string; role: 'user'; content: string }): void
  setMessages(messages: AgUiMessage[]): void
  runAgent(input?: object): Promise<unknown>
  abortRun(): void
  subscribe(subscriber: object): unknown
}

export interface AgUiMessage {
  readonly id: string
  readonly role: string
  readonly content?: unknown
  readonly toolCallId?: string
  readonly activityType?: string
  readonly toolCalls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

export interface AgUiInterrupt {
  readonly id: string
  readonly reason: string
  readonly message?: string
  readonly toolCallId?: string
  readonly expiresAt?: string
  readonly responseSchema?: Readonly<Record<string, unknown>>
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface AgUiEvent {
  readonly type: string
  readonly [key: string]: unknown
}

type AgentClass = new (config: {
  url: string
  threadId: string
  headers: Record<string, string>
  initialMessages?: never[]
  fetch?: typeof globalThis.fetch
}) => AnyAgent

export interface AgUiVersion {
  readonly name: '@ag-ui/client 1.0.0' | '@ag-ui/client 0.0.59'
  readonly agent: AgentClass
}

/** The versions of `@ag-ui/client`: the newest one, and the one that CopilotKit and assistant-ui depend on. */
export const AG_UI_VERSIONS: readonly AgUiVersion[] = [
  { name: '@ag-ui/client 1.0.0', agent: Agent1 },
  // Its optional properties may be undefined. It is used through the members above only.
  { name: '@ag-ui/client 0.0.59', agent: Agent0 as unknown as AgentClass },
]

interface OpenOptions {
  readonly url: string
  readonly threadId?: string
  readonly person?: string
  /** Headers beside the key of the person. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sends the requests. Default: that of the client. */
  readonly fetch?: typeof globalThis.fetch
  /** The path after the address of the bridge. Default `/ag-ui`. */
  readonly path?: string
}

/** How many runs are open. They share the console. */
let running = 0

/** A stock `HttpAgent`. Fails on each warning of the client, and on each event that is not valid for the newest schema. */
export class AgUiClient {
  readonly threadId: string
  readonly agent: AnyAgent
  /** The events of the last run. */
  events: AgUiEvent[] = []
  readonly #version: AgUiVersion
  readonly #options: OpenOptions

  constructor(version: AgUiVersion, options: OpenOptions) {
    const { url, threadId = crypto.randomUUID(), person = 'hanako', path = '/ag-ui' } = options
    this.threadId = threadId
    this.#version = version
    this.#options = options
    const headers = { 'x-api-key': person, ...options.headers }
    const { fetch } = options
    const config = { url: `${url}${path}`, threadId, headers, ...(fetch && { fetch }) }
    this.agent = new version.agent(config)
    this.agent.subscribe({
      onEvent: ({ event }: { event: AgUiEvent }) => void this.events.push(event),
    })
  }

  /** Sends a message of the person, and reads the run to its end. */
  async say(content: string, id: string = crypto.randomUUID()): Promise<AgUiEvent[]> {
    this.agent.addMessage({ id, role: 'user', content })
    return this.run()
  }

  /** Runs the agent, for example with answers. */
  async run(input?: object): Promise<AgUiEvent[]> {
    this.events = []
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    // The clients print failed runs, which their callers receive as well.
    const error = vi.spyOn(console, 'error').mockReturnValue()
    running += 1
    try {
      await this.agent.runAgent(input)
      assert.deepEqual(warn.mock.calls, [])
    } finally {
      running -= 1
      if (running === 0) for (const spy of [warn, error]) spy.mockRestore()
    }
    for (const event of this.events) {
      const { error: invalid } = Events1.safeParse(event)
      assert.deepEqual(invalid?.issues ?? [], [], JSON.stringify(event))
    }
    return this.events
  }

  /** Answers interrupts: with a payload each, or `cancelled`. */
  answer(answers: Readonly<Record<string, unknown>>): Promise<AgUiEvent[]> {
    const resume = Object.entries(answers).map(([interruptId, payload]) =>
      payload === 'cancelled'
        ? { interruptId, status: 'cancelled' }
        : { interruptId, status: 'resolved', payload },
    )
    return this.run({ resume })
  }

  /** Returns a client that has loaded the chat, as a page does after a reload. */
  async reload(): Promise<AgUiClient> {
    const path = `${this.#options.path ?? '/ag-ui'}/agent/default/connect`
    const { threadId } = this
    const loaded = new AgUiClient(this.#version, { ...this.#options, threadId, path })
    await loaded.run()
    return loaded
  }

  get pending(): readonly AgUiInterrupt[] {
    return this.agent.pendingInterrupts
  }

  get messages(): readonly AgUiMessage[] {
    return this.agent.messages
  }

  /** The messages in the order of their ids. A client appends what a snapshot adds to the messages that it has. */
  get byId(): readonly AgUiMessage[] {
    return this.messages.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  }

  /** The text of the agent. */
  get text(): string[] {
    return this.messages.flatMap(({ role, content }) =>
      role === 'assistant' && typeof content === 'string' && content !== '' ? [content] : [],
    )
  }

  /** The results of calls, in order. */
  get results(): unknown[] {
    return this.messages.flatMap(({ role, content }) =>
      role === 'tool' ? [JSON.parse(String(content)) as unknown] : [],
    )
  }

  /** The names of the calls that the client shows. */
  get calls(): string[] {
    return this.messages.flatMap(({ toolCalls = [] }) =>
      toolCalls.map((call) => call.function.name),
    )
  }

  /** The codes of the answers that the last run refused. */
  get refused(): string[] {
    return this.events.flatMap(({ type, name, value }) =>
      type === 'CUSTOM' && name === 'adk-refused' && isRecord(value) ? [String(value['code'])] : [],
    )
  }

  /** The types of the last run's events. */
  get types(): string[] {
    return this.events.map(({ type }) => type)
  }
}
