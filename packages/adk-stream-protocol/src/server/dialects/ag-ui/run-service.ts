import { ProtocolError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/guards.ts'
import type { DecisionResponse, OutputResponse } from '../../../protocol/read-responses.ts'
import { SSE_HEADERS, sseFrame } from '../../../protocol/sse.ts'
import type { ResponsesRequest, StreamRequest } from '../../../protocol/stream-request.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { LazyBackend } from '../../chats/backend.ts'
import type { ChatService, OpenedTurn } from '../../chats/chat-service.ts'
import type { ApprovalDecisions } from '../../chats/decisions/approval-decisions.ts'
import type { FileReply, Reply, TurnReply } from '../../http/exchange.ts'
import { isStoreFailure, readError } from '../../../store/read-error.ts'
import type { Drain } from '../../settings/drain.ts'
import type { BridgeLimits } from '../../settings/limits.ts'
import { toCardLabels } from './cards.ts'
import type { RunEvent } from './events.ts'
import type { RefusedAnswer } from './interrupts.ts'
import { findInterrupts } from './interrupts.ts'
import type { ReadResume } from './read-resume.ts'
import { readResume } from './read-resume.ts'
import type { RefusedPart, RunInput } from './run-input.ts'
import { hasNewMessage, readClientCalls, readMessage, readToolMessages } from './run-input.ts'
import { toRunSink } from './run-sink.ts'
import { RunWriter } from './run-writer.ts'
import { readSnapshot } from './snapshot.ts'

export interface RunServiceParts {
  readonly backend: LazyBackend
  readonly chats: Pick<ChatService, 'send' | 'resume' | 'stop'>
  readonly decisions: Pick<ApprovalDecisions, 'decideInBackground'>
  readonly limits: BridgeLimits
  readonly drain: Pick<Drain, 'refuseNewWork'>
  readonly exposeState: (key: string) => boolean
  readonly onError: (error: unknown) => void
  /** Whether pages ask with cards instead of interrupts (AG1540). */
  readonly hasCards: boolean
}

/** A run of one request. */
interface Run {
  readonly principal: Principal
  readonly chat: ChatRef
  readonly input: RunInput
  readonly writer: RunWriter
  readonly refused: readonly RefusedAnswer[]
  /** Whether the run carries answers to an earlier one. */
  readonly answers: boolean
}

/** Serves the runs of AG-UI clients. It keeps nothing: the chat service has the conversation, and the ledger decides. */
export class RunService {
  readonly #parts: RunServiceParts

  constructor(parts: RunServiceParts) {
    this.#parts = parts
  }

  /** Starts a turn for a new message, continues one with answers, or returns the current state if the request has neither. */
  async run(principal: Principal, input: RunInput, addressed?: string): Promise<Reply> {
    const run = await this.#open(principal, input)
    if (!hasNewMessage(input)) return this.#answer(run)
    const { request, refused } = readMessage(input, this.#parts.limits)
    const named = addressed === undefined ? {} : { addressed }
    this.#parts.drain.refuseNewWork()
    const opened = await this.#parts.chats.send(principal, { ...request, ...named })
    return this.#toReply(run, opened, refused.map(toNotice))
  }

  /** Returns the conversation, the running turn and what waits. Empty for a chat without messages. */
  async connect(principal: Principal, input: RunInput): Promise<Reply> {
    return this.#show(await this.#open(principal, input))
  }

  async stop(principal: Principal, threadId: string): Promise<void> {
    await this.#parts.chats.stop({ principalId: principal.id, chatId: threadId })
  }

  async #open(principal: Principal, input: RunInput): Promise<Run> {
    const writer = await this.#createWriter(input)
    const chat = { principalId: principal.id, chatId: input.threadId }
    return { principal, chat, input, writer, refused: [], answers: false }
  }

  async #createWriter(input: RunInput): Promise<RunWriter> {
    const { isPageTool } = await this.#parts.backend.get()
    return new RunWriter({
      isPageTool,
      cards: this.#parts.hasCards ? toCardLabels(input.language) : undefined,
      clientCalls: readClientCalls(input),
      hasState: isRecord(input.state),
    })
  }

  async #answer(run: Run): Promise<Reply> {
    const { principal, chat, input, writer } = run
    const { exposeState } = this.#parts
    const backend = await this.#parts.backend.get()
    // Before the answers take effect: the run streams what follows them.
    const snapshot = await readSnapshot(backend, chat, writer, { exposeState })
    if (snapshot.isEmpty) throw new ProtocolError('nothing-new')
    const answers = await readResume(backend, run, input.resume ?? [])
    const outputs = readToolMessages(input, writer.waitingForPage)
    const { request, others } = toRequest(chat.chatId, answers, outputs)
    const refused = [...answers.refused]
    if (!request)
      return this.#show({ ...(await this.#open(principal, input)), refused, answers: true })
    this.#parts.drain.refuseNewWork()
    refused.push(...(await this.#decideOthers(run, others)))
    try {
      const opened = await this.#parts.chats.send(principal, request)
      return this.#toReply({ ...run, refused, answers: true }, opened, snapshot.events)
    } catch (thrown) {
      const { code, message } = readRefusal(thrown)
      const failed = request.decisions.map(({ approvalId }) => ({
        interruptId: approvalId,
        code,
        message,
      }))
      const none = failed.length === 0 ? [{ code, message }] : failed
      const all = [...refused, ...none]
      return this.#show({ ...(await this.#open(principal, input)), refused: all, answers: true })
    }
  }

  /** Records the answers to other messages than the one that the run continues. Returns those that are refused. */
  async #decideOthers(
    { principal, chat }: Run,
    others: readonly DecisionResponse[],
  ): Promise<RefusedAnswer[]> {
    const refused: RefusedAnswer[] = []
    for (const decision of others) {
      const decided = this.#parts.decisions.decideInBackground(principal, chat, decision)
      const error = await decided.catch(readRefusal)
      const { approvalId: interruptId } = decision
      if (error) refused.push({ interruptId, code: error.code, message: error.message })
    }
    return refused
  }

  /** Returns the stored conversation, and the running turn from its start. */
  async #show(run: Run): Promise<Reply> {
    const { chat, writer } = run
    const { exposeState, chats } = this.#parts
    const backend = await this.#parts.backend.get()
    const opened = await chats.resume(chat)
    const unfinished = opened?.turn.messageId
    const snapshot = await readSnapshot(backend, chat, writer, { exposeState, unfinished })
    if (opened) return this.#toReply(run, opened, snapshot.events)
    if (snapshot.isEmpty) return toEvents([])
    const before = this.#begin(run, snapshot.events)
    return toEvents([...before, ...(await this.#finish(run))])
  }

  #toReply(run: Run, { turn, from }: OpenedTurn, events: readonly RunEvent[]): TurnReply {
    const before = this.#begin(run, events)
    const finish = (): Promise<readonly RunEvent[]> => this.#finish(run)
    const { writer } = run
    return {
      type: 'turn',
      turn,
      from,
      headers: {},
      format: {
        hasPositions: false,
        headers: {},
        end: '',
        convert: (sink) => toRunSink(sink, { writer, before, finish }),
      },
    }
  }

  #begin({ input, refused }: Run, events: readonly RunEvent[]): RunEvent[] {
    const { threadId, runId } = input
    const version = isVersioned(input) ? { protocolVersion: '1.0' } : {}
    return [
      { type: 'RUN_STARTED', threadId, runId, ...version },
      ...events,
      ...refused.map(toNotice),
    ]
  }

  /** Returns the end of a run. Never rejects. */
  async #finish({ principal, chat, input, writer, refused, answers }: Run): Promise<RunEvent[]> {
    const { threadId, runId } = input
    const ids = { threadId, runId, isVersioned: isVersioned(input) }
    try {
      const backend = await this.#parts.backend.get()
      const asked = { principal, chat, refused, isVersioned: ids.isVersioned }
      const interrupts = await findInterrupts(backend, asked)
      const end = writer.endRun({ ...ids, answers, interrupts })
      if (!writer.hasOutdatedResult) return end
      const { exposeState } = this.#parts
      const stored = await readSnapshot(backend, chat, await this.#createWriter(input), {
        exposeState,
      })
      return [...stored.events, ...end]
    } catch (thrown) {
      const { code, message, cause, status } = readError(thrown)
      if (status >= 500) this.#parts.onError(cause ?? thrown)
      const events = writer.endRun({ ...ids, answers, interrupts: [] })
      return [...events, { type: 'RUN_ERROR', code, message }]
    }
  }
}

/** Returns the error of an answer. Throws if the server has failed, not the answer: the client then sends it again. */
function readRefusal(thrown: unknown): ProtocolError {
  const error = readError(thrown)
  if (isStoreFailure(error.code) || error.code === 'internal') throw thrown
  return error
}

interface RunAnswers {
  /** Undefined if the run answers nothing. */
  readonly request: (ResponsesRequest & StreamRequest) | undefined
  readonly others: readonly DecisionResponse[]
}

/** Returns the request with the answers of a run about one message, the last one, and the answers about others. */
function toRequest(
  chatId: string,
  { decisions }: ReadResume,
  outputs: readonly OutputResponse[],
): RunAnswers {
  if (decisions.length + outputs.length === 0) return { request: undefined, others: [] }
  const messageId = decisions.at(-1)?.messageId
  const [own = [], others = []] = [true, false].map((isOwn) =>
    decisions.flatMap((each) => ((each.messageId === messageId) === isOwn ? each.decision : [])),
  )
  const given = { decisions: own, outputs, results: [], earlier: [] }
  return { request: { type: 'responses', chatId, messageId, ...given }, others }
}

function isVersioned({ protocolVersion }: RunInput): boolean {
  return typeof protocolVersion === 'string' && /^\d+\.\d+/.test(protocolVersion)
}

function toNotice(value: RefusedAnswer | RefusedPart): RunEvent {
  return { type: 'CUSTOM', name: 'adk-refused', value }
}

/** Returns events that are known as a whole. */
function toEvents(events: readonly RunEvent[]): FileReply {
  const text = events.map((event) => sseFrame(JSON.stringify(event))).join('')
  return {
    type: 'file',
    status: 200,
    headers: SSE_HEADERS,
    bytes: Buffer.from(text),
  }
}
