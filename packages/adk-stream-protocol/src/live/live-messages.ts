import type { Turn } from '../turns/turn.ts'
import type { Floor } from './floor.ts'
import type { LiveCallState } from './live-calls.ts'
import type { LiveMessage } from './live-message.ts'
import type { Segment } from './segment.ts'

/** Tells a message in a turn of its chat, when the turn before has ended. */
export type OpenTurn = (
  messageId: string,
  options: {
    readonly events: Segment
    /** Whether the message was told before, up to a pause. */
    readonly resumes: boolean
    /** Whether nobody asked for the turn. */
    readonly background: boolean
  },
) => Promise<Turn>

export interface LiveMessagesOptions {
  readonly floor: Floor<LiveMessage>
  readonly openTurn: OpenTurn
  /** A turn began that nobody asked for. */
  readonly onTurn: (turn: Turn, message: LiveMessage) => void
  /** The person wants to hear no more of a message. */
  readonly onStop: (message: LiveMessage) => void
  readonly onError: (error: unknown) => void
}

/** How long a model that waits for calls is quiet before the message pauses: it may make further ones. */
const QUIET_MS = 100

/** The messages of a live run that are not whole yet: each is told in a turn, from its begin or a pause to the next pause or its end. */
export class LiveMessages {
  readonly #options: LiveMessagesOptions
  readonly #messages = new Map<string, LiveMessage>()
  readonly #ofCall = new Map<string, LiveMessage>()
  /** Calls that were made when nobody listened any more: neither stored nor told. */
  readonly #unheard = new Set<string>()
  #quiet: NodeJS.Timeout | undefined

  constructor(options: LiveMessagesOptions) {
    this.#options = options
  }

  /** Whether anything is being done or said for a message; what only waits for a person or a client does not count. */
  get busy(): boolean {
    return [...this.#messages.values()].some((message) => this.#isBusy(message))
  }

  /** The turn in which a message goes on that a client answered. Nothing when nothing of it is known here. */
  async turnOf(messageId: string): Promise<Turn | undefined> {
    const message = this.#messages.get(messageId)
    if (!message) return undefined
    return message.open ? message.turn : this.open(message, { background: false, resumes: true })
  }

  /** Whether a message is being told now. */
  tells(messageId: string): boolean {
    return this.#messages.get(messageId)?.open === true
  }

  /** The message that made a call. */
  ofCall(toolCallId: string): LiveMessage {
    const message = this.#ofCall.get(toolCallId)
    if (!message) throw new Error(`The call ${toolCallId} belongs to no message.`)
    return message
  }

  addCalls(message: LiveMessage, toolCallIds: readonly string[], unheard: boolean): void {
    for (const id of toolCallIds) {
      this.#ofCall.set(id, message)
      if (unheard) this.#unheard.add(id)
    }
  }

  /** Whether nothing is known of a call in its chat. */
  isUnheard(toolCallId: string): boolean {
    return this.#unheard.has(toolCallId)
  }

  /** Whether a call was made for an answer that a person had stopped. */
  isUnwanted(toolCallId: string): boolean {
    return this.isUnheard(toolCallId) || this.ofCall(toolCallId).stopped
  }

  /** What a call waited for has come: its message goes on, also one that was stopped meanwhile. */
  goOn(toolCallId: string): void {
    this.ofCall(toolCallId).stopped = false
  }

  noteCall(toolCallId: string, state: LiveCallState): void {
    const message = this.ofCall(toolCallId)
    message.noteCall(toolCallId, state)
    if (state === 'ended') this.#unheard.delete(toolCallId)
    if (state === 'waiting' || state === 'ended') this.review(message)
  }

  /** Begins to tell a message, or goes on with it. */
  open(
    message: LiveMessage,
    { background, resumes = false }: { background: boolean; resumes?: boolean },
  ): Promise<Turn> {
    this.#messages.set(message.messageId, message)
    message.stopped = false
    const events = message.begin()
    message.turn = this.#options.openTurn(message.messageId, { events, background, resumes })
    message.turn.then(
      ({ signal }) => signal.addEventListener('abort', () => this.#stop(message), { once: true }),
      () => message.pause(),
    )
    return message.turn
  }

  /** Opens a message that something is to be told of, with nobody asking. */
  ensureOpen(message: LiveMessage): void {
    if (message.open || message.stopped) return
    this.makeRoom()
    const resumes = message.turn !== undefined
    const { onTurn, onError } = this.#options
    this.open(message, { background: true, resumes }).then((turn) => onTurn(turn, message), onError)
  }

  /** Something else is said: what only waits, or runs, makes room for it. What comes of it is told in its message later. */
  makeRoom(): void {
    for (const message of this.#messages.values())
      if (!this.#options.floor.owes(message)) message.pause()
  }

  /** Whether calls of a message run while it is not told. */
  runsCallsOf(messageId: string): boolean {
    return this.#messages.get(messageId)?.runs === true
  }

  /** Something is said or done: the model is not quiet. */
  stir(): void {
    clearTimeout(this.#quiet)
  }

  /** Ends the telling of a message that nothing more comes for. */
  review(message: LiveMessage): void {
    this.stir()
    if (message.open) this.#settle(message)
    const isOver = !message.open && !message.waits && !message.works
    if (isOver && !this.#options.floor.owes(message)) this.#forget(message)
  }

  /** Nothing comes any more, for any message. */
  end(failure: unknown): void {
    this.stir()
    for (const message of this.#messages.values()) {
      if (failure === undefined) message.pause()
      else message.fail(failure)
    }
  }

  #isBusy(message: LiveMessage): boolean {
    const { floor } = this.#options
    if (message.works) return true
    const waits = message.waits && floor.holder === message && floor.standsStill
    return floor.owes(message) && !waits
  }

  #settle(message: LiveMessage): void {
    const { floor } = this.#options
    if (message.works || (message.held && message.waits)) return
    if (!floor.owes(message)) message.pause()
    else if (message.waits && floor.holder === message && floor.standsStill) {
      this.#quiet = setTimeout(() => message.pause(), QUIET_MS)
    }
  }

  #stop(message: LiveMessage): void {
    message.stopped = true
    message.pause()
    this.#options.onStop(message)
  }

  #forget(message: LiveMessage): void {
    this.#messages.delete(message.messageId)
    for (const [id, other] of this.#ofCall) if (other === message) this.#ofCall.delete(id)
  }
}
