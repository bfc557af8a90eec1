/** The part of a message that the tests read, in both versions of the AI SDK. */
export interface ChatMessage {
  readonly id: string
  readonly role: string
  readonly metadata?: unknown
  readonly parts: readonly ChatPart[]
}

/** A part of any type. The type determines its fields. */
export interface ChatPart {
  readonly type: string
  readonly text?: string
  readonly state?: string
  readonly toolCallId?: string
  readonly input?: unknown
  readonly output?: unknown
  readonly errorText?: string
  readonly url?: string
  readonly mediaType?: string
  readonly data?: unknown
}

export interface ChatOptions {
  readonly id: string
  readonly api: string
  readonly fetch: typeof globalThis.fetch
  /** Send again by itself when all tool calls of the last step are complete. */
  readonly autoSend?: boolean
  readonly messages?: readonly ChatMessage[]
}

interface FilePart {
  readonly type: 'file'
  readonly mediaType: string
  readonly url: string
  readonly filename?: string
}

/** What the `Chat` of both versions has in common. */
interface RealChat {
  readonly id: string
  readonly messages: readonly object[]
  readonly status: string
  readonly error: Error | undefined
  sendMessage(message: { text: string; files?: FilePart[]; messageId?: string }): Promise<void>
  regenerate(options?: { messageId?: string }): Promise<void>
  resumeStream(): Promise<void>
  stop(): Promise<void>
  '~registerMessagesCallback'(onChange: () => void): () => void
  '~registerStatusCallback'(onChange: () => void): () => void
}

/** A real `Chat` that records its states, and with which a test can wait for a state. */
export class ChatProbe {
  /** The text of the newest message after each change of it. */
  readonly shown: string[] = []
  readonly #chat: RealChat
  readonly #waiting = new Set<() => void>()

  constructor(chat: RealChat) {
    this.#chat = chat
    const wake = (): void => {
      const text = textOf(this.lastMessage)
      if (this.lastMessage?.role === 'assistant' && text !== this.shown.at(-1)) {
        this.shown.push(text)
      }
      for (const check of this.#waiting) check()
    }
    chat['~registerMessagesCallback'](wake)
    chat['~registerStatusCallback'](wake)
  }

  get messages(): readonly ChatMessage[] {
    return this.#chat.messages as readonly ChatMessage[]
  }

  get lastMessage(): ChatMessage | undefined {
    return this.messages.at(-1)
  }

  get text(): string {
    return textOf(this.lastMessage)
  }

  get status(): string {
    return this.#chat.status
  }

  get error(): Error | undefined {
    return this.#chat.error
  }

  /** Sends a message. Resolves when the reply has ended. */
  send(text: string, more: { files?: FilePart[]; messageId?: string } = {}): Promise<void> {
    return this.#chat.sendMessage({ text, ...more })
  }

  regenerate(): Promise<void> {
    return this.#chat.regenerate()
  }

  resume(): Promise<void> {
    return this.#chat.resumeStream()
  }

  stop(): Promise<void> {
    return this.#chat.stop()
  }

  /** Resolves as soon as the chat is in a matching state. */
  until(matches: (chat: ChatProbe) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!matches(this)) return
        this.#waiting.delete(check)
        resolve()
      }
      this.#waiting.add(check)
      check()
    })
  }

  /** Resolves when the newest message is a reply with this text. */
  untilShown(text: string): Promise<void> {
    return this.until(
      ({ lastMessage }) => lastMessage?.role === 'assistant' && textOf(lastMessage) === text,
    )
  }
}

/** All text parts of a message, joined. */
export function textOf(message: ChatMessage | undefined): string {
  return (message?.parts ?? [])
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text ?? '')
    .join('')
}

/** The tool parts of a message. */
export function toolParts(message: ChatMessage | undefined): ChatPart[] {
  return (message?.parts ?? []).filter(({ toolCallId }) => toolCallId !== undefined)
}

/** The types of a message's parts, in order. */
export function partTypes(message: ChatMessage | undefined): string[] {
  return (message?.parts ?? []).map(({ type }) => type)
}
