import type { MessageView } from './response-states.ts'
import type { Decision } from '../transports/chat-observer.ts'

type Done = void | PromiseLike<void>

/** What a tool gave that ran in the page, as `addToolOutput` takes it. */
export interface ToolOutputGiven {
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
  addToolOutput(output: ToolOutputGiven): Done
  // The options of the AI SDK pass through.
  sendMessage(message?: unknown, options?: unknown): Promise<void>
  regenerate(options?: unknown): Promise<void>
  resumeStream(): Promise<void>
}

/** What of a chat is taken over while it is attached. */
export interface OriginalMethods {
  readonly answer: (decision: Decision) => Done
  readonly output: (output: ToolOutputGiven) => Done
  readonly send: (message?: unknown, options?: unknown) => Promise<void>
  readonly regenerate: (options?: unknown) => Promise<void>
}

/** `sendAutomaticallyWhen`: what the AI SDK asks when an answer was given or a stream has ended; there is no other way to be asked. */
const TAKEN_OVER = [
  'addToolApprovalResponse',
  'addToolOutput',
  'sendMessage',
  'regenerate',
  'sendAutomaticallyWhen',
] as const

/** The ways that take the place of a chat's own. */
export type PatchedMethods = Readonly<Record<(typeof TAKEN_OVER)[number], unknown>>

/** Puts other ways in the place of a chat's own. Gives the own ones, and what puts them back. */
export function patchChat(
  chat: AttachableChat,
  ways: PatchedMethods,
): [own: OriginalMethods, restore: () => void] {
  const before = Object.fromEntries(TAKEN_OVER.map((name) => [name, Reflect.get(chat, name)]))
  const own: OriginalMethods = {
    answer: chat.addToolApprovalResponse.bind(chat),
    output: chat.addToolOutput.bind(chat),
    send: chat.sendMessage.bind(chat),
    regenerate: chat.regenerate.bind(chat),
  }
  Object.assign(chat, ways)
  return [own, () => void Object.assign(chat, before)]
}

/** Whether a chat is being answered, by its status in the words of the AI SDK. */
export function isBusy({ status }: Pick<AttachableChat, 'status'>): boolean {
  return status === 'streaming' || status === 'submitted'
}

const IDLE_TURNS = 50

/** Waits until a chat has seen the end of its stream, which takes it a few turns of the event loop. False when it goes on. */
export async function whenIdle(chat: AttachableChat): Promise<boolean> {
  for (let turn = 0; turn < IDLE_TURNS; turn += 1) {
    await new Promise<void>((resolve) => setTimeout(resolve, 0))
    if (!isBusy(chat)) return true
  }
  return false
}
