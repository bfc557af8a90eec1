import type { MessageView } from '../connection/chat-messages.ts'

type Done = void | PromiseLike<void>

/** A decision as a chat stores it. */
export interface Decision {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string | undefined
}

/** The result of a browser tool, as `addToolOutput` takes it. */
export interface ToolOutput {
  readonly tool: string
  readonly toolCallId: string
  readonly state?: 'output-available' | 'output-error'
  readonly output?: unknown
  readonly errorText?: string
}

/** A `Chat` of the AI SDK 6 or 7. */
export interface AttachableChat {
  readonly id: string
  readonly status: string
  readonly error?: Error | undefined
  messages: MessageView[]
  addToolApprovalResponse(decision: Decision): Done
  addToolOutput(output: ToolOutput): Done
  // The options of the AI SDK pass through.
  sendMessage(message?: unknown, options?: unknown): Promise<void>
  regenerate(options?: unknown): Promise<void>
  resumeStream(options?: unknown): Promise<void>
}

/** The methods of a chat before it was patched. */
export interface OriginalMethods {
  readonly addDecision: (decision: Decision) => Done
  readonly addOutput: (output: ToolOutput) => Done
  readonly sendMessage: (message?: unknown, options?: unknown) => Promise<void>
  readonly regenerate: (options?: unknown) => Promise<void>
}

/** The methods that replace the chat's own, and what they need. `onFinish` and `sendAutomaticallyWhen` are fields of every `AbstractChat`. */
export interface PatchedMethods {
  readonly addToolApprovalResponse: (decision: Decision) => Promise<void>
  readonly addToolOutput: (output: ToolOutput) => Promise<void>
  readonly sendMessage: (message?: unknown, options?: unknown) => Promise<void>
  readonly regenerate: (options?: object) => Promise<void>
  readonly sendAutomaticallyWhen: (chat: { messages: readonly MessageView[] }) => boolean
  /** Called when the AI SDK has read a response to its end or has stopped reading it, after the option of the same name. */
  readonly onFinish: () => void
  /** Whether the chat sends a request that is not a `resumeStream()`. */
  readonly isSending: () => boolean
}

/** Replaces methods of a chat. Returns the original ones and a function that restores them. */
export function patchChat(
  chat: AttachableChat,
  { onFinish, isSending, ...methods }: PatchedMethods,
): [original: OriginalMethods, restore: () => void] {
  const original: OriginalMethods = {
    addDecision: chat.addToolApprovalResponse.bind(chat),
    addOutput: chat.addToolOutput.bind(chat),
    sendMessage: chat.sendMessage.bind(chat),
    regenerate: chat.regenerate.bind(chat),
  }
  const callOption = Reflect.get(chat, 'onFinish') as ((finished: unknown) => void) | undefined
  let failure: Error | undefined
  /** The newest failure of a request, and the message that was sent last. */
  let latest: { readonly error: Error; readonly sentId: string | undefined } | undefined
  const finish = (finished: unknown): void => {
    failure = chat.error
    if (failure) latest = { error: failure, sentId: newestSentId(chat) }
    try {
      callOption?.(finished)
    } finally {
      onFinish()
    }
  }
  const resume = chat.resumeStream.bind(chat)
  const resumeStream = async (options: unknown): Promise<void> => {
    failure = chat.error
    const earlier = latest
    await resume(options)
    const meanwhile = latest === earlier ? undefined : latest
    // CL1602: the AI SDK removes the error of another request. If a turn was read, that of a request before it is out of date.
    const error =
      failure ?? (meanwhile?.sentId === newestSentId(chat) ? meanwhile?.error : undefined)
    if (error && chat.status === 'ready' && !isSending())
      // Every `AbstractChat` has this method.
      (chat as unknown as WithStatus).setStatus({ status: 'error', error })
  }
  const sendMessage = async (message?: unknown, options?: unknown): Promise<void> => {
    // It may be the message that failed.
    latest = undefined
    await methods.sendMessage(message, options)
  }
  const patched = { ...methods, sendMessage, onFinish: finish, resumeStream }
  const names = Object.keys(patched)
  const before = Object.fromEntries(names.map((name) => [name, Reflect.get(chat, name)]))
  Object.assign(chat, patched)
  return [original, () => void Object.assign(chat, before)]
}

function newestSentId({ messages }: AttachableChat): string | undefined {
  return messages.findLast(({ role }) => role === 'user')?.id
}

interface WithStatus {
  setStatus(status: { readonly status: string; readonly error: Error }): void
}

/** Whether the AI SDK is sending a request or reading the response to it. */
export function isBusy({ status }: Pick<AttachableChat, 'status'>): boolean {
  return status === 'streaming' || status === 'submitted'
}

/** Waits until the AI SDK sends and reads nothing. */
export interface IdleWait {
  /** Resolves when the chat is idle. */
  readonly wait: () => Promise<void>
  /** Call this when the AI SDK has read a response to its end. */
  readonly onFinish: () => void
  /** Ends all waits. */
  readonly release: () => void
}

/** `onIdle` is called when the chat is idle and nothing has waited for that. */
export function createIdleWait(chat: AttachableChat, onIdle: () => void): IdleWait {
  let waiting: (() => void)[] = []
  const release = (): void => {
    const released = waiting
    waiting = []
    for (const resolve of released) resolve()
  }
  return {
    wait: async () => {
      if (isBusy(chat)) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    onFinish: () => {
      // The AI SDK decides after its `onFinish` whether it sends another request by itself.
      setTimeout(() => {
        if (isBusy(chat)) return
        // A method that waits sends a request, which ends here again.
        if (waiting.length === 0) onIdle()
        release()
      }, 0)
    },
    release,
  }
}
