import type { ChatOptions, ConformChat, ConformClient } from './conform-chat.ts'
import { RecordedRequests } from './recorded-requests.ts'

interface AgUiMessage {
  readonly id: string
  readonly role: string
  readonly content?: unknown
  readonly toolCallId?: string
  readonly toolCalls?: readonly { readonly id: string }[]
}

interface HttpAgent {
  url: string
  readonly threadId: string
  readonly messages: readonly AgUiMessage[]
  readonly pendingInterrupts: readonly { readonly id: string }[]
  addMessage(message: { id: string; role: 'user'; content: string }): void
  setMessages(messages: AgUiMessage[]): void
  runAgent(input?: object): Promise<unknown>
  abortRun(): void
  subscribe(subscriber: object): unknown
}

/** What is used of the package `@ag-ui/client`. */
export interface AgUiPackage {
  readonly HttpAgent: new (options: object) => HttpAgent
}

/** Returns the client of a version of `@ag-ui/client`: its own `HttpAgent`. */
export function agUiClient(name: string, package_: AgUiPackage): ConformClient {
  return {
    name,
    open: (options) => new AgUiChat(package_, options, crypto.randomUUID()),
  }
}

class AgUiChat implements ConformChat {
  readonly requests: RecordedRequests
  error: string | undefined
  readonly #package: AgUiPackage
  readonly #options: ChatOptions
  readonly #agent: HttpAgent
  readonly #faults: string[] = []
  /** What a page knew before it was loaded again, if the backend cannot say it. */
  #known: readonly string[] = []

  constructor(package_: AgUiPackage, options: ChatOptions, threadId: string) {
    this.#package = package_
    this.#options = options
    this.requests = new RecordedRequests(options)
    this.#agent = new package_.HttpAgent({
      url: options.url,
      threadId,
      fetch: this.requests.fetch,
    })
    this.#agent.subscribe({
      onRunErrorEvent: ({ event }: { event: { message: string } }) => {
        this.error = event.message
      },
    })
  }

  get pending(): readonly string[] {
    const { pendingInterrupts } = this.#agent
    return pendingInterrupts.length > 0 ? pendingInterrupts.map(({ id }) => id) : this.#known
  }

  get calls(): readonly string[] {
    return this.#agent.messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id))
  }

  get results(): readonly string[] {
    return this.#agent.messages.flatMap(({ role, toolCallId, content }) =>
      role === 'tool' && toolCallId !== undefined && !isRefusal(content) ? [toolCallId] : [],
    )
  }

  get text(): string {
    const { messages } = this.#agent
    const last = messages.findLastIndex(({ role }) => role === 'user')
    return messages
      .slice(last + 1)
      .flatMap(({ role, content }) =>
        role === 'assistant' && typeof content === 'string' ? [content] : [],
      )
      .join('')
  }

  async send(content: string): Promise<void> {
    this.#agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
    await this.#run()
  }

  async answer(approved: boolean): Promise<void> {
    const resume = this.pending.map((interruptId) => ({
      interruptId,
      status: 'resolved',
      payload: { approved },
    }))
    this.#known = []
    await this.#run({ resume })
  }

  stop(): void {
    this.#agent.abortRun()
  }

  /** The client rejects a message while an interrupt is open, but a tab that was opened before does not have the interrupt. */
  writer(): ConformChat {
    return new AgUiChat(this.#package, this.#options, this.#agent.threadId)
  }

  async reload(): Promise<ConformChat> {
    const { historyUrl, url } = this.#options
    const loaded = new AgUiChat(this.#package, this.#options, this.#agent.threadId)
    if (historyUrl === undefined) {
      loaded.#agent.setMessages(structuredClone([...this.#agent.messages]))
      loaded.#known = this.pending
      return loaded
    }
    loaded.#agent.url = historyUrl.replaceAll('{chat}', encodeURIComponent(this.#agent.threadId))
    await loaded.#run()
    loaded.#agent.url = url
    return loaded
  }

  async findFaults(): Promise<string[]> {
    return this.#faults
  }

  /** The client checks the order of events itself: it throws, or prints a warning. */
  async #run(input?: object): Promise<void> {
    this.error = undefined
    const { warn, error } = console
    Object.assign(console, {
      warn: (...values: readonly unknown[]) => {
        this.#faults.push(values.map(String).join(' ').slice(0, 200))
      },
      // The client also throws what it prints.
      error: () => undefined,
    })
    try {
      await this.#agent.runAgent(input)
    } catch (thrown) {
      this.error = thrown instanceof Error ? thrown.message : String(thrown)
      if (isOrderFault(this.error)) this.#faults.push(this.error)
    } finally {
      Object.assign(console, { warn, error })
    }
  }
}

/** The client's own words for events in the wrong order or of the wrong shape. */
function isOrderFault(message: string): boolean {
  return /Cannot send|must be|First event|validation|Invalid|not valid|unexpected/i.test(message)
}

/** Whether a tool message says that the tool did not run. */
function isRefusal(content: unknown): boolean {
  return /denied|declin|reject|not approved|refus|"error"/i.test(String(content))
}
