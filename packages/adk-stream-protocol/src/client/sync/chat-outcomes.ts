import type { ResponseChannel, StoredConversation } from '../transports/response-channel.ts'
import type { PartView } from './response-states.ts'
import type { AttachableChat } from './attachable-chat.ts'
import { isBusy, whenIdle } from './attachable-chat.ts'
import type { ChatAnswers } from './chat-answers.ts'
import { settleQuestions, mergeMessages } from './message-edits.ts'

interface Parts {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  readonly answers: ChatAnswers
  /** The chat's messages as the server has them, where they can be had. */
  readonly load: () => Promise<StoredConversation | undefined>
  readonly onProgress: () => void
}

/** Finds out what came of the person's answers where no stream of the chat told it. */
export class ChatOutcomes {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The chat has read to the end. Says whether it rests, and did not fail. */
  async onRest(): Promise<boolean> {
    const { chat, answers, onProgress } = this.#parts
    if (!(await whenIdle(chat))) return false
    const { messages } = chat
    const settled = settleQuestions(messages)
    if (settled) chat.messages = settled
    onProgress()
    const older = messages.slice(0, -1)
    const { undelivered } = answers
    // One that was answered while another was written; the newest is the AI SDK's.
    if (undelivered && older.includes(undelivered)) await answers.sendUndelivered()
    // Its outcome was told where nobody read.
    else if (older.some(({ parts }) => parts.some((part) => this.#isUntold(part))))
      await this.reload()
    else await this.read()
    return true
  }

  /** An answer travelled beside a stream that was about to end: what came of it is told where nobody reads. */
  async read(): Promise<void> {
    const { chat, answers } = this.#parts
    if (!(await whenIdle(chat)) || !answers.areUntold) return
    await chat.resumeStream()
    if (answers.areUntold && !isBusy(chat)) await this.reload()
  }

  /** Shows the messages that the server has; gives their ids. */
  async reload(): Promise<readonly string[] | undefined> {
    const { chat, load, onProgress } = this.#parts
    const loaded = await load()
    if (!loaded) return undefined
    const { messages, running } = loaded
    // The server leaves out what is being written, for this page or for another one.
    const isLeftOut = running || isBusy(chat)
    chat.messages = isLeftOut ? mergeMessages(messages, chat.messages) : [...messages]
    onProgress()
    return messages.map(({ id }) => id)
  }

  #isUntold({ state, approval }: PartView): boolean {
    const { answers } = this.#parts.channel
    return state === 'approval-responded' && answers.stateOf(approval?.id ?? '') === 'taken'
  }
}
