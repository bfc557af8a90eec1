/**
 * Tracks which message the model replies to. A live session is one stream of model turns, and a turn does not name its prompt. But the
 * model replies in order: to the earliest message first, and to results that it waits for before messages that arrived meanwhile.
 */
export interface TurnTakingState<Message> {
  /** Messages without a reply, in the order in which the model replies to them. */
  readonly pending: readonly Message[]
  /** Messages with the result of a parked call that the model has not received yet. */
  readonly held: readonly Message[]
  /** The message that the model's current turn belongs to. */
  readonly speaking: { readonly message: Message; readonly isReply: boolean } | undefined
  /** Calls whose results the model waits for before it speaks. */
  readonly blockingCalls: ReadonlySet<string>
  /** Whether the current turn has made blocking calls, and whether all have results. */
  readonly calls: 'none' | 'open' | 'answered'
  /** Whether the model completes a turn with calls at once, and not after their results. Models differ; the state is updated as the model shows it. */
  readonly completesCalls: boolean
}

export type TurnTakingEvent<Message> =
  /** The user sent a message that the model will reply to. */
  | { readonly type: 'message-sent'; readonly message: Message }
  /** The model produced output. */
  | { readonly type: 'output-received' }
  /** The model produced output without a pending message. It belongs to this new message. */
  | { readonly type: 'unprompted-output-received'; readonly message: Message }
  /** The output turned out to be a reply: the transcript of the user's speech arrived after it. */
  | { readonly type: 'prompt-recognized' }
  /** The model made calls that it waits for. */
  | { readonly type: 'calls-made'; readonly toolCallIds: readonly string[] }
  /** The model received the result of a call that belongs to this message. */
  | { readonly type: 'result-sent'; readonly toolCallId: string; readonly message: Message }
  /** The result of a parked call is held back until the model is idle. */
  | { readonly type: 'result-held'; readonly message: Message }
  | { readonly type: 'held-result-sent'; readonly message: Message }
  | { readonly type: 'call-cancelled'; readonly toolCallId: string }
  /** The model cancelled a call before its response arrived. It does not reply to the response. */
  | { readonly type: 'result-ignored'; readonly message: Message }
  /** The connection was lost during a turn. The model repeats the turn if it is a reply. */
  | { readonly type: 'turn-cut-off' }
  | { readonly type: 'turn-completed' }

/** Returns the state after an event. */
export function nextSpeaker<Message>(
  state: TurnTakingState<Message>,
  event: TurnTakingEvent<Message>,
): TurnTakingState<Message> {
  switch (event.type) {
    case 'message-sent':
      return { ...state, pending: [...state.pending, event.message] }
    case 'output-received':
      return receiveOutput(state)
    case 'unprompted-output-received':
      return { ...state, speaking: { message: event.message, isReply: false } }
    case 'prompt-recognized':
      return state.speaking ? { ...state, speaking: { ...state.speaking, isReply: true } } : state
    case 'calls-made':
      return event.toolCallIds.length === 0
        ? state
        : {
            ...state,
            blockingCalls: new Set([...state.blockingCalls, ...event.toolCallIds]),
            calls: 'open',
          }
    case 'result-sent':
      return sendResult(state, event.toolCallId, event.message)
    case 'result-held':
      return { ...state, held: [...state.held, event.message] }
    case 'held-result-sent':
      return {
        ...state,
        held: withoutFirst(state.held, event.message),
        pending: [...state.pending, event.message],
      }
    case 'call-cancelled':
      return { ...state, blockingCalls: without(state.blockingCalls, event.toolCallId) }
    case 'result-ignored':
      return ignoreResult(state, event.message)
    case 'turn-cut-off':
      return isReplying(state)
        ? { ...state, speaking: undefined, pending: [state.speaking.message, ...state.pending] }
        : state
    case 'turn-completed':
      return completeTurn(state)
  }
}

/** Shared by all conversations, most of which have no such call. */
const NO_CALLS: ReadonlySet<string> = new Set()

/** Holds the state of `nextSpeaker` for one live conversation. */
export class TurnTaking<Message extends object> {
  #state: TurnTakingState<Message>

  constructor({ completesCalls }: { readonly completesCalls: boolean }) {
    this.#state = {
      pending: [],
      held: [],
      speaking: undefined,
      blockingCalls: NO_CALLS,
      calls: 'none',
      completesCalls,
    }
  }

  apply(event: TurnTakingEvent<Message>): void {
    this.#state = nextSpeaker(this.#state, event)
  }

  /** The message that the model's current turn belongs to. */
  get speaker(): Message | undefined {
    return this.#state.speaking?.message
  }

  /** The message that the next `turn-completed` belongs to. */
  get current(): Message | undefined {
    return currentMessage(this.#state)
  }

  /** Whether the model replies to a message, or will. */
  isReplyExpected(message: Message): boolean {
    return this.isReceived(message) || this.#state.held.includes(message)
  }

  /** Whether the model has received what it replies to. A result that is held back is sent after it has replied to all messages. */
  isReceived(message: Message): boolean {
    return this.speaker === message || this.#state.pending.includes(message)
  }

  /** Whether the model has replied to a message when its current turn ends. */
  isLastTurnOf(message: Message): boolean {
    const { pending, held } = nextSpeaker(this.#state, { type: 'turn-completed' })
    return this.current === message && !pending.includes(message) && !held.includes(message)
  }

  /** Whether the current turn is a reply. After a lost connection, the model repeats it. */
  get isReplying(): boolean {
    return isReplying(this.#state)
  }

  /** Whether the model has replied to everything that it has received, and waits for no results of calls. */
  get isIdle(): boolean {
    const { speaking, pending, blockingCalls } = this.#state
    return !speaking && pending.length === 0 && blockingCalls.size === 0
  }

  /** Whether the model's turn is blocked until calls have results. */
  get isBlocked(): boolean {
    return this.#state.calls === 'open' && this.#state.blockingCalls.size > 0
  }
}

function receiveOutput<Message>(state: TurnTakingState<Message>): TurnTakingState<Message> {
  const { speaking, calls } = state
  // The model continues the turn after the results of its calls, so it did not complete the turn before.
  if (speaking)
    return calls === 'answered' ? { ...state, calls: 'none', completesCalls: false } : state
  const [message, ...pending] = state.pending
  return message === undefined ? state : { ...state, pending, speaking: { message, isReply: true } }
}

function sendResult<Message>(
  state: TurnTakingState<Message>,
  toolCallId: string,
  message: Message,
): TurnTakingState<Message> {
  const { pending, speaking, calls } = state
  if (!state.blockingCalls.has(toolCallId)) return { ...state, pending: [...pending, message] }
  const blockingCalls = without(state.blockingCalls, toolCallId)
  if (blockingCalls.size > 0) return { ...state, blockingCalls }
  return speaking?.message === message && calls === 'open'
    ? { ...state, blockingCalls, calls: 'answered' }
    : { ...state, blockingCalls, pending: [message, ...pending] }
}

function ignoreResult<Message>(
  state: TurnTakingState<Message>,
  message: Message,
): TurnTakingState<Message> {
  return state.speaking?.message === message && state.calls === 'answered'
    ? { ...state, calls: 'none' }
    : { ...state, pending: withoutFirst(state.pending, message) }
}

function completeTurn<Message>(state: TurnTakingState<Message>): TurnTakingState<Message> {
  const { speaking, calls, blockingCalls } = state
  const message = currentMessage(state)
  const completesCalls = (calls === 'open' && blockingCalls.size > 0) || state.completesCalls
  const pending = speaking ? state.pending : state.pending.slice(1)
  const isContinued = message !== undefined && calls === 'answered' && completesCalls
  return {
    ...state,
    completesCalls,
    calls: 'none',
    speaking: undefined,
    pending: isContinued ? [message, ...pending] : pending,
  }
}

function currentMessage<Message>(state: TurnTakingState<Message>): Message | undefined {
  return state.speaking?.message ?? state.pending[0]
}

function isReplying<Message>(
  state: TurnTakingState<Message>,
): state is TurnTakingState<Message> & { readonly speaking: { readonly message: Message } } {
  return state.speaking?.isReply === true
}

function withoutFirst<Message>(messages: readonly Message[], message: Message): readonly Message[] {
  const index = messages.indexOf(message)
  return index === -1 ? messages : messages.toSpliced(index, 1)
}

function without(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const rest = new Set(ids)
  rest.delete(id)
  return rest.size === 0 ? NO_CALLS : rest
}
