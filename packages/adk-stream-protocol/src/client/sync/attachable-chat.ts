import type { MessageView } from './chat-messages.ts'

type Done = void | PromiseLike<void>

/** A decision as a chat stores it. */
export interface Decision {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
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
  resumeStream(): Promise<void>
}

/** The methods of a chat before it was patched. */
export interface OriginalMethods {
  readonly addDecision: (decision: Decision) => Done
  readonly addOutput: (output: ToolOutput) => Done
  readonly sendMessage: (message?: unknown, options?: unknown) => Promise<void>
  readonly regenerate: (options?: unknown) => Promise<void>
}

/** The methods that replace the chat's own. `onFinish` and `sendAutomaticallyWhen` are fields of every `AbstractChat`. */
export interface PatchedMethods {
  readonly addToolApprovalResponse: (decision: Decision) => Promise<void>
  readonly addToolOutput: (output: ToolOutput) => Promise<void>
  readonly sendMessage: (message?: unknown, options?: unknown) => Promise<void>
  readonly regenerate: (options?: object) => Promise<void>
  readonly sendAutomaticallyWhen: (chat: { messages: readonly MessageView[] }) => boolean
  /** Called when the AI SDK has read a response to its end, after the option of the same name. */
  readonly onFinish: () => void
}

/** Replaces methods of a chat. Returns the original ones and a function that restores them. */
export function patchChat(
  chat: AttachableChat,
  { onFinish, ...methods }: PatchedMethods,
): [original: OriginalMethods, restore: () => void] {
  const fields = [...Object.keys(methods), 'onFinish']
  const before = Object.fromEntries(fields.map((name) => [name, Reflect.get(chat, name)]))
  const original: OriginalMethods = {
    addDecision: chat.addToolApprovalResponse.bind(chat),
    addOutput: chat.addToolOutput.bind(chat),
    sendMessage: chat.sendMessage.bind(chat),
    regenerate: chat.regenerate.bind(chat),
  }
  const callOption = before['onFinish'] as ((finished: unknown) => void) | undefined
  const finish = (finished: unknown): void => {
    try {
      callOption?.(finished)
    } finally {
      onFinish()
    }
  }
  Object.assign(chat, { ...methods, onFinish: finish })
  return [original, () => void Object.assign(chat, before)]
}

/** Whether the AI SDK is sending a request or reading the response to it. */
export function isBusy({ status }: Pick<AttachableChat, 'status'>): boolean {
  return status === 'streaming' || status === 'submitted'
}
