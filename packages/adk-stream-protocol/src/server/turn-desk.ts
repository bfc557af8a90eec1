import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import type { Event } from '@google/adk'
import type { Content } from '@google/genai'

import { asBrowserTool } from '../adk/browser-tool.ts'
import { toReplay } from '../adk/replay-chunks.ts'
import type { ToldTurn } from '../adk/stored-turns.ts'
import { closeAtPause, findPause, tellStoredTurn } from '../adk/stored-turns.ts'
import type { TranslationOptions } from '../adk/translate-event.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import type { Chunk } from '../protocol/chunk.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { OutputAnswer } from '../protocol/read-answers.ts'
import type { MessageRequest } from '../protocol/stream-request.ts'
import type { RunOutcome, RunTurnOptions } from '../turns/run-turn.ts'
import { runTurn } from '../turns/run-turn.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey, Turns } from '../turns/turns.ts'
import { withdrawLost } from './after-crash.ts'
import { collectAnswers, mayGoOn, onlyRuns } from './answer-turn.ts'
import type { Backend, BackendOnDemand } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import { BrowserWaits } from './browser-waits.ts'
import { afterCancelling, cancelPending } from './cancel-open.ts'
import { holdChat } from './hold-chat.ts'
import type { TurnInfo } from './options.ts'
import { traceTurn } from './trace-turn.ts'

export interface TurnDeskOptions extends TranslationOptions {
  readonly whilePending: 'keep' | 'cancel'
  readonly onChunk: ((chunk: Chunk, turn: TurnInfo) => void) | undefined
  readonly onError: (error: unknown) => void
  /** Hears of every turn that begins or goes on. */
  readonly onTurn: (turn: TurnInfo) => void
}

export interface TurnAnswers {
  /** What ran on the client. Decisions are in the ledger. */
  readonly outputs: readonly OutputAnswer[]
  /** Whether nobody reads the turn that goes on. Default false. */
  readonly background?: boolean
  /** An approval that the client has seen asked; it reads from the pause after it. Default: the last pause. */
  readonly seen?: string
  /** An approval that was just given, and whose call may start before the turn goes on. */
  readonly given?: Approval
}

/** Begins turns, and goes on with those that were answered. */
export class TurnDesk {
  readonly #backend: BackendOnDemand
  readonly #turns: Turns
  readonly #options: TurnDeskOptions
  readonly #waits = new BrowserWaits()

  constructor(backend: BackendOnDemand, turns: Turns, options: TurnDeskOptions) {
    this.#backend = backend
    this.#turns = turns
    this.#options = options
  }

  /** Answers a new message. */
  async begin(chat: ChatKey, request: MessageRequest): Promise<Turn> {
    const backend = await this.#backend.get()
    if (request.replaces && !backend.host.rewindable) throw new ProtocolError('not-rewindable')
    const key = toApprovalChat(backend, chat)
    const userMessageId = request.message.id ?? randomUUID()
    const cancels = request.replaces || this.#options.whilePending === 'cancel'
    return this.#turns.begin(chat, randomUUID(), {
      run: async (turn) => {
        const { messageId, signal } = turn
        const events = backend.host.run(key, request, { messageId, userMessageId, signal })
        const all = cancels ? afterCancelling(() => cancelPending(backend, key), events) : events
        await this.#run(backend, turn, { chat, events: all })
      },
    })
  }

  /** Goes on with a turn as far as its answers reach. */
  async resume(chat: ChatKey, messageId: string, answers: TurnAnswers): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    let told: ToldTurn | undefined
    const release = { now: async (): Promise<void> => undefined }
    return this.#turns.begin(chat, messageId, {
      patient: true,
      background: answers.background === true,
      prepare: async (turn) => {
        release.now = await holdChat(backend.ledger, key)
        try {
          if (answers.given) await this.#begin(backend, turn, { key, given: answers.given })
          told = await this.#tell(backend, key, messageId)
          if (!told) throw new ProtocolError('nothing-new')
          if (await onlyRuns(told.state, backend, key)) throw new ProtocolError('approval-decided')
          await prefill(turn, told, { backend, key, seen: answers.seen })
        } catch (thrown) {
          await release.now()
          if (answers.given) this.#collectLater(backend, { chat, given: answers.given })
          throw thrown
        }
      },
      run: async (turn) => {
        const events = this.#follow(backend, turn, { key, outputs: answers.outputs })
        await this.#run(backend, turn, { chat, events, ...(told && { from: told.state }) })
        await release.now()
        if (answers.given) this.#collectLater(backend, { chat, given: answers.given })
      },
    })
  }

  /** AP61: starts a call that was approved, now that the chat is taken for it and before its turn is even read. */
  async #begin(
    { host }: Backend,
    { signal }: Turn,
    { key, given }: { key: ApprovalChat; given: Approval },
  ): Promise<void> {
    if (given.state.name !== 'approved') return
    // The work of reading the turn would otherwise be done before the tool's first line.
    if (await host.begin(key, given, signal)) await setImmediate()
  }

  /** Goes on, when it has ended, with a call that was begun by a turn which was stopped before ADK came by for its result. */
  #collectLater({ host }: Backend, { chat, given }: { chat: ChatKey; given: Approval }): void {
    if (!host.hasBegun(given)) return
    const again = { outputs: [], background: true }
    // Nobody waits for this promise. What cannot be told now is on record, and told to whoever reads the chat.
    host
      .ended(given)
      .then(async () => this.resume(chat, given.messageId, again))
      .catch(this.#options.onError)
  }

  /** The events of all runs that the answers allow, one after the other: an answer may come while another is followed. */
  async *#follow(
    backend: Backend,
    { messageId, signal }: Turn,
    { key, outputs }: { key: ApprovalChat; outputs: readonly OutputAnswer[] },
  ): AsyncGenerator<Event> {
    const given = new Set<string>()
    for (;;) {
      const told = await this.#tell(backend, key, messageId)
      const content = told && (await collectAnswers(told.state, backend, { chat: key, outputs }))
      if (!content && given.size === 0) {
        await withdrawLost(backend, key, { messageId, calls: told?.state.calls })
      }
      const ids = readIds(content)
      // What was given once and is still open is not settled by giving it again.
      if (!content || signal.aborted || ids.every((id) => given.has(id))) return
      for (const id of ids) {
        given.add(id)
        this.#waits.forget(id)
      }
      yield* backend.host.resume(key, messageId, { content, signal })
    }
  }

  async #run(
    backend: Backend,
    turn: Turn,
    {
      chat,
      events,
      from,
    }: { chat: ChatKey; events: AsyncIterable<Event> } & Pick<RunTurnOptions, 'from'>,
  ): Promise<void> {
    const { onChunk, onError, exposeState } = this.#options
    const info = { ...chat, messageId: turn.messageId }
    this.#options.onTurn(info)
    try {
      await traceTurn(info, async () => {
        const outcome = await runTurn(turn, events, {
          exposeState,
          onError,
          onChunk: onChunk && ((chunk) => onChunk(chunk, info)),
          ...(from && { from }),
        })
        await backend.host.settle(toApprovalChat(backend, chat), outcome)
        await this.#watch(backend, info, outcome)
        return outcome
      })
    } catch (error) {
      // The answer is told; only the session could not be put in order, and the next turn tries again.
      onError(error)
    }
  }

  /** Gives clients their time to answer the calls that wait for them. */
  async #watch(
    { findTool }: Backend,
    { messageId, ...chat }: TurnInfo,
    { waiting }: RunOutcome,
  ): Promise<void> {
    for (const [toolCallId, toolName] of waiting) {
      const tool = await findTool(toolName)
      const browser = tool && asBrowserTool(tool)
      if (!browser) continue
      this.#waits.watch(toolCallId, browser.timeoutMs, (output) => {
        // Nobody waits for this promise. A client that answered in the meantime was first, and then there is nothing new.
        this.resume(chat, messageId, { outputs: [output], background: true }).catch(
          this.#options.onError,
        )
      })
    }
  }

  /** Stops waiting for clients. */
  close(): void {
    this.#waits.close()
  }

  async #tell(
    { host }: Backend,
    key: ApprovalChat,
    messageId: string,
  ): Promise<ToldTurn | undefined> {
    const stored = await host.turn(key, messageId)
    return stored && closeAtPause(tellStoredTurn(stored, this.#options))
  }
}

function readIds(content: Content | undefined): string[] {
  return content?.parts?.map((part) => part.functionResponse?.id ?? '') ?? []
}

/** Puts into the log what was told before, and marks where the client that answers goes on. */
async function prefill(
  turn: Turn,
  { chunks, pauses, state }: ToldTurn,
  { backend, key, seen }: { backend: Backend; key: ApprovalChat; seen: string | undefined },
): Promise<void> {
  const decided = new Set<string>()
  for (const [toolCallId, call] of state.calls) {
    const approval = call.approval && (await backend.ledger.findByCall(key, toolCallId))
    if (approval && mayGoOn(approval, backend.host)) decided.add(toolCallId)
  }
  const pause = findPause({ chunks, pauses }, seen)
  const before = toReplay(chunks.slice(0, pause), (toolCallId) => decided.has(toolCallId))
  turn.log.append({ type: 'start', messageId: turn.messageId })
  for (const chunk of before) turn.log.append(chunk)
  turn.log.markPause()
  for (const chunk of chunks.slice(pause)) turn.log.append(chunk)
}
