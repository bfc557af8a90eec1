import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { type StreamRequest, readStreamRequest } from '../../protocol/stream-request.ts'
import { defer } from '../../shared/async.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { checkDecidedAs } from '../auth/authenticate.ts'
import type { ChatService, OpenedTurn, SendToRun } from '../chats/chat-service.ts'
import type { ApprovalDecisions } from '../chats/decisions/approval-decisions.ts'
import { readAgent } from '../http/exchange.ts'
import type { BridgeLimits } from '../settings/limits.ts'
import type { Connection, FrameHandlers, OpenRunFrame } from './connection.ts'
import type { AudioMode } from './turn-readers.ts'

interface TurnHandlersOptions {
  readonly chats: ChatService
  readonly decisions: Pick<ApprovalDecisions, 'decide'>
  /** Sends new messages to runs that stay open. Default: each starts a run of its own. */
  readonly toRun?: SendToRun
  readonly limits: BridgeLimits
  /** Returns how the client receives the audio of a watched chat. Default: as the request says, or as parts of its messages. */
  readonly audioOf?: (chatId: string) => AudioMode | undefined
}

/** Creates the handlers of a socket whose messages start runs of their own. It works like `POST /stream`. */
export function openTurnHandlers(
  connection: Connection,
  options: TurnHandlersOptions,
): Omit<FrameHandlers, OpenRunFrame> {
  const requests = new ClientRequests(connection, options)
  const { chats, decisions } = options
  const chatOf = (chatId: string): ChatRef => ({ principalId: connection.principal.id, chatId })
  const decide = async (frame: ClientFrameOf<'decide'>): Promise<string> => {
    const { id, approvalId, approved, reason, args, payload, preview, offer, decidedAs } = frame
    const principal = await connection.checkPrincipal()
    checkDecidedAs(principal, decidedAs)
    const details = withoutUndefined({ reason, editedArgs: args, payload, preview, offer })
    const decision = { approvalId, approved, ...details }
    return (await decisions.decide(principal, chatOf(id), decision)).state.name
  }
  return {
    send: (frame) => requests.send(frame),
    resume: (frame) => requests.resume(frame),
    abort: (frame) => requests.abort(frame),
    leave: (frame) => requests.leave(frame),
    stop: ({ id, messageId }) => chats.stop(chatOf(id), messageId),
    decide: async (frame) => {
      const { decisionId } = frame
      const state = await requests.decisionQueue.next(() => decide(frame))
      connection.send({ type: 'decided', decisionId, ok: true, state })
    },
    'tool-output': async ({ id, outputId, toolCallId, output, errorText, decidedAs }) => {
      // BT6: the client may have sent the decision that allows this output just before.
      await requests.decisionQueue.settled()
      const result = errorText === undefined ? { output } : { errorText }
      // WS16: the output may be the answer to a question, which is a decision.
      const principal = await connection.checkPrincipal()
      checkDecidedAs(principal, decidedAs)
      await chats.submitToolResult(principal, chatOf(id), { toolCallId, result })
      connection.send({ type: 'tool-output-taken', outputId, ok: true })
    },
    ping: ({ nonce }) => connection.send({ type: 'pong', ...(nonce !== undefined && { nonce }) }),
    join: () => undefined,
    busy: () => false,
    close: () => requests.close(),
  }
}

/** Processes the decisions of a socket one after the other, in the order of their frames. */
interface DecisionQueue {
  /** Calls `run` when the earlier decisions are recorded. The next call waits until `run` has finished or called `onDecided`. */
  next<Result>(run: (onDecided: () => void) => Promise<Result>): Promise<Result>
  /** Resolves when all decisions so far are recorded or refused. */
  settled(): Promise<void>
}

function createDecisionQueue(): DecisionQueue {
  let last = Promise.resolve()
  return {
    async next(run) {
      const before = last
      const { promise, resolve: onDecided } = defer()
      last = promise
      await before
      try {
        return await run(onDecided)
      } finally {
        onDecided()
      }
    },
    settled: () => last,
  }
}

/** A request whose turn has not started yet. */
interface OpeningRequest {
  /** What the client has done meanwhile. A disconnected client has left. `stop` also stops a turn that the client would only join. */
  cancelled?: 'leave' | 'abort' | 'stop'
}

/** The `send` and `resume` requests of one socket. */
class ClientRequests {
  readonly decisionQueue = createDecisionQueue()
  readonly #connection: Connection
  readonly #options: TurnHandlersOptions
  readonly #opening = new Map<string, OpeningRequest>()

  constructor(connection: Connection, options: TurnHandlersOptions) {
    this.#connection = connection
    this.#options = options
  }

  async send(frame: ClientFrameOf<'send'>): Promise<void> {
    const { requestId, id, messages, trigger, messageId } = frame
    const { decidedAs, ...body } = frame.body ?? {}
    if (!this.#checkRequest(frame)) return
    const { exchange, findFormat, send, read, readers } = this.#connection
    const sent = { ...body, id, chatId: id, messages, trigger, messageId }
    const request = {
      ...readStreamRequest(sent, this.#options.limits),
      ...readAgent(exchange()),
    }
    const format = findFormat(request.format)
    await this.#open(requestId, async (opening) => {
      const { turn, from } = await this.#start(request, decidedAs)
      if (opening.cancelled === 'abort' || opening.cancelled === 'stop') return turn.stop()
      send({ type: 'start', requestId })
      const { positions } = request
      read(requestId, turn, { from, format, audio: this.#audioOf(frame), positions, isOwn: true })
      // Attach and detach a reader: the grace period of a turn starts when its first reader leaves.
      if (opening.cancelled === 'leave') readers.leave(requestId)
    })
  }

  #start(request: StreamRequest, decidedAs: string | undefined): Promise<OpenedTurn> {
    const { chats, toRun } = this.#options
    const { principal, checkPrincipal } = this.#connection
    checkDecidedAs(principal, decidedAs)
    const decides =
      request.type === 'responses' || request.earlier.length > 0 || chats.mayDecide(request.message)
    if (!decides) return chats.send(principal, request, { toRun })
    // WS16: a request with decisions is authenticated again.
    return this.decisionQueue.next(async (onDecided) => {
      const current = await checkPrincipal()
      return chats.send(current, request, { toRun, onDecided })
    })
  }

  async resume(frame: ClientFrameOf<'resume'>): Promise<void> {
    const { requestId, id: chatId, body, after, positions = after !== undefined } = frame
    if (!this.#checkRequest(frame)) return
    const { principal, findFormat, send, read } = this.#connection
    const format = findFormat(body?.dialect)
    await this.#open(requestId, async (opening) => {
      const chat = { principalId: principal.id, chatId }
      const opened = await this.#options.chats.resume(chat, format.hasPositions ? after : undefined)
      if (opening.cancelled === 'stop') opened?.turn.stop()
      if (opening.cancelled) return
      if (!opened) return send({ type: 'no-active', requestId })
      send({ type: 'start', requestId })
      const { turn, from } = opened
      read(requestId, turn, { from, format, audio: this.#audioOf(frame), positions })
    })
  }

  /**
   * Stops a turn without a grace period. A client that only joined the turn does not stop it while others read it, unless its person
   * pressed Stop (`stop`).
   */
  abort({ requestId, stop = false }: ClientFrameOf<'abort'>): void {
    const opening = this.#opening.get(requestId)
    if (opening) opening.cancelled = stop ? 'stop' : 'abort'
    this.#opening.delete(requestId)
    const { readers } = this.#connection
    const reader = readers.find(requestId)
    // While it is still read here: without a reader, a turn of another server continues for its other readers.
    if (stop) reader?.turn.stop()
    readers.leave(requestId)
    if (reader?.isOwn || reader?.turn.log.watched === false) reader.turn.stop()
  }

  /** Detaches a reader without stopping the turn, as a lost connection does (TU5). */
  leave({ requestId }: ClientFrameOf<'leave'>): void {
    const opening = this.#opening.get(requestId)
    if (opening) opening.cancelled = 'leave'
    this.#connection.readers.leave(requestId)
  }

  close(): void {
    for (const opening of this.#opening.values()) opening.cancelled = 'leave'
    this.#opening.clear()
  }

  async #open(requestId: string, run: (opening: OpeningRequest) => Promise<void>): Promise<void> {
    const opening: OpeningRequest = {}
    this.#opening.set(requestId, opening)
    try {
      await run(opening)
    } finally {
      if (this.#opening.get(requestId) === opening) this.#opening.delete(requestId)
    }
  }

  #audioOf({ id, audio }: ClientFrameOf<'send' | 'resume'>): AudioMode {
    return this.#options.audioOf?.(id) ?? audio ?? 'base64'
  }

  #checkRequest({ type, requestId }: ClientFrameOf<'send' | 'resume'>): boolean {
    const { readers, send } = this.#connection
    if (this.#opening.has(requestId) || readers.has(requestId)) {
      // Not an `error` frame: its request id belongs to another request, which continues.
      const message = 'This requestId is in use. Use a new one for every request.'
      send({ type: 'refused', frame: type, code: 'bad-request', message })
      return false
    }
    if (this.#opening.size + readers.size >= this.#options.limits.maxRequestsPerSocket) {
      throw new ProtocolError('too-many-turns', { retryAfterSeconds: 1 })
    }
    return true
  }
}
