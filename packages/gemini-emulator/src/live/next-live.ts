import type { Content, FunctionResponse, Part } from '../wire/content.ts'
import type { ServerContent } from '../wire/live-messages.ts'
import { splitPieces } from '../wire/text.ts'
import { addResponse, cancelCalls, startCalls } from './live-calls.ts'
import type {
  Effect,
  LiveEvent,
  LiveState,
  QueuedInput,
  StateStep,
  Transition,
} from './live-state.ts'
import { addUsage, countUsage, NO_USAGE } from './live-state.ts'

/** Computes the next state of a session and the effects of an event. Pure: the same events give the same frames. */
export function nextLive(state: LiveState, event: LiveEvent): Transition {
  switch (event.type) {
    case 'content':
      return addContent(state, event.turns, event.turnComplete)
    case 'text':
      return addInput(state, event.text)
    case 'video':
      return [{ ...state, videoFrame: event.frame }, []]
    case 'speech-start':
      return bargeIn({ ...state, isPersonSpeaking: true })
    case 'transcript':
      return addTranscript({ ...state, isPersonSpeaking: false }, event.text, event.ms)
    case 'tool-responses':
      return addResponses(state, event.responses)
    case 'turn-step':
      return applyStep(state, event.turn, event.step)
  }
}

/** Starts a turn for the queued input if the model is idle. */
export function startNextTurn(state: LiveState): Transition {
  const { queue, history, turn } = state
  if (turn.state !== 'idle' || queue.length === 0) return [state, []]
  const first = queue.findIndex((input) => input.needsReply)
  const count = first === -1 ? queue.length : first + 1
  const next = {
    ...state,
    history: [...history, ...queue.slice(0, count).flatMap((input) => input.contents)],
    queue: queue.slice(count),
  }
  if (first === -1) return [next, [{ type: 'send-handle' }]]
  const id = state.turnCount + 1
  return [
    { ...next, turnCount: id, turn: { state: 'speaking', id, parts: [], usage: NO_USAGE } },
    [{ type: 'start-turn', turn: id }],
  ]
}

function addContent(
  state: LiveState,
  turns: readonly Content[],
  turnComplete: boolean,
): Transition {
  const contents = turns.map((turn) => ({ ...turn, role: turn.role ?? 'user' }))
  if (state.isInitialHistory) {
    return [
      { ...state, history: [...state.history, ...contents], isInitialHistory: !turnComplete },
      [{ type: 'send-handle' }],
    ]
  }
  return chain(interrupt(state), enqueue({ contents, needsReply: turnComplete }), startNextTurn)
}

/** Adds typed or spoken text, together with the latest video frame. */
function addInput(state: LiveState, text: string): Transition {
  const { videoFrame } = state
  const parts: Part[] = videoFrame ? [{ inlineData: videoFrame }, { text }] : [{ text }]
  const input: QueuedInput = { contents: [{ role: 'user', parts }], needsReply: true }
  const interrupted: Transition = state.config.bargeIn ? interrupt(state) : [state, []]
  return chain(interrupted, enqueue(input), (next) =>
    startNextTurn({ ...next, videoFrame: undefined }),
  )
}

function addTranscript(state: LiveState, text: string, ms: number): Transition {
  const next = { ...state, inputAudioMs: state.inputAudioMs + ms }
  // A response may have waited until the person had finished.
  if (text === '') return state.config.interruptWaits ? startNextTurn(next) : [next, []]
  const pieces = state.config.inputTranscription ? splitPieces(text) : []
  const transcript = pieces.map((piece) => sendContent({ inputTranscription: { text: piece } }))
  return chain([next, transcript], (transcribed) => addInput(transcribed, text))
}

function bargeIn(state: LiveState): Transition {
  const { config, turn } = state
  if (!config.bargeIn) return [state, []]
  if (turn.state === 'speaking') return interrupt(state)
  if (turn.state === 'idle' || !config.cancelOnBargeIn) return [state, []]
  const [cancelled, cancellation] = cancelCalls(state, (call) => call.blocking)
  // Queued text stays in the queue while the user speaks.
  return chain([cancelled, [{ type: 'abort-turn' }, ...cancellation]], (next) =>
    endBlockedTurn(next, { interrupted: true }),
  )
}

/** Interrupts the model while it speaks. The history keeps the text sent so far. */
function interrupt(state: LiveState): Transition {
  if (state.turn.state !== 'speaking') return [state, []]
  return [
    { ...saveToHistory(state), turn: { state: 'idle' } },
    [
      { type: 'abort-turn' },
      sendContent({ interrupted: true }),
      completeTurn(state, {}),
      { type: 'send-handle' },
    ],
  ]
}

function addResponses(state: LiveState, responses: readonly FunctionResponse[]): Transition {
  const mustWait = state.isPersonSpeaking && state.config.interruptWaits
  let transition: Transition = [state, []]
  for (const response of responses) {
    transition = chain(transition, (next) => {
      const added = addResponse(next, response)
      const isInterrupted = added.interrupts && !mustWait
      return chain([added.state, added.effects], isInterrupted ? interrupt : unchanged)
    })
  }
  return mustWait ? transition : chain(transition, startNextTurn)
}

function applyStep(state: LiveState, turnId: number, step: StateStep): Transition {
  const { turn } = state
  // An interrupted turn may still report a few steps.
  if (turn.state === 'idle' || turn.id !== turnId) return [state, []]
  switch (step.type) {
    case 'content':
      return applyContent(state, step)
    case 'call':
      return chain(startCalls(saveToHistory(state), step, turn), completeToolTurn, startNextTurn)
    case 'cancel': {
      const cancelled = cancelCalls(state, () => true)
      return chain(cancelled, (next) => endBlockedTurn(next, {}), startNextTurn)
    }
    case 'complete': {
      const reason = step.reason === undefined ? {} : { turnCompleteReason: step.reason }
      const done: LiveState = { ...saveToHistory(state), turn: { state: 'idle' } }
      return chain([done, [completeTurn(state, reason), { type: 'send-handle' }]], startNextTurn)
    }
  }
}

function applyContent(state: LiveState, step: Extract<StateStep, { type: 'content' }>): Transition {
  const { turn } = state
  if (turn.state !== 'speaking') return [state, []]
  const parts = step.part ? addPart(turn.parts, step.part) : turn.parts
  const usage = addUsage(turn.usage, step.part, step.samples ?? 0)
  const effects = Object.keys(step.content).length > 0 ? [sendContent(step.content)] : []
  return [{ ...state, turn: { ...turn, parts, usage } }, effects]
}

/** Sends `turnComplete` for a turn with blocking calls if the model does so immediately. */
function completeToolTurn(state: LiveState): Transition {
  const { turn, config } = state
  if (turn.state !== 'blocked' || turn.moreCalls) return [state, []]
  const sendHandle: Effect = { type: 'send-handle' }
  if (!turn.open || !config.completeToolTurns) return [state, [sendHandle]]
  return [{ ...state, turn: { ...turn, open: false } }, [completeTurn(state, {}), sendHandle]]
}

/** Ends a blocked turn whose calls were cancelled. Sends `turnComplete` if it was not sent yet. */
function endBlockedTurn(
  state: LiveState,
  { interrupted }: Pick<ServerContent, 'interrupted'>,
): Transition {
  const { turn } = state
  if (turn.state !== 'blocked') return [state, []]
  return [
    { ...state, turn: { state: 'idle' } },
    [
      ...(turn.open && interrupted ? [sendContent({ interrupted })] : []),
      ...(turn.open ? [completeTurn(state, {})] : []),
      { type: 'send-handle' },
    ],
  ]
}

/** Moves the parts sent so far to the history. */
function saveToHistory(state: LiveState): LiveState {
  const { turn, history } = state
  if (turn.state !== 'speaking' || turn.parts.length === 0) return state
  const content: Content = { role: 'model', parts: [...turn.parts] }
  return { ...state, turn: { ...turn, parts: [] }, history: [...history, content] }
}

/** Joins the pieces of a text to one part. Skips thoughts. */
function addPart(parts: readonly Part[], part: Part): readonly Part[] {
  if (part.thought) return parts
  const last = parts.at(-1)
  if (part.text === undefined || last?.text === undefined) return [...parts, part]
  return [...parts.slice(0, -1), { text: last.text + part.text }]
}

function sendContent(serverContent: ServerContent): Effect {
  return { type: 'send', message: { serverContent } }
}

function completeTurn(state: LiveState, reason: Pick<ServerContent, 'turnCompleteReason'>): Effect {
  const serverContent = { turnComplete: true as const, ...reason }
  return { type: 'send', message: { serverContent, usageMetadata: countUsage(state) } }
}

function enqueue(input: QueuedInput): (state: LiveState) => Transition {
  return (state) => [{ ...state, queue: [...state.queue, input] }, []]
}

const unchanged = (state: LiveState): Transition => [state, []]

/** Applies further transitions and collects all effects. */
function chain(first: Transition, ...others: ((state: LiveState) => Transition)[]): Transition {
  let [state, effects] = first
  for (const apply of others) {
    const [next, more] = apply(state)
    state = next
    effects = [...effects, ...more]
  }
  return [state, effects]
}
