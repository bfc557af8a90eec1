import { expect, test } from 'vitest'

import type {
  TurnTakingEvent,
  TurnTakingState,
} from '../../src/modules/live/session/turn-taking.ts'
import { nextSpeaker, TurnTaking } from '../../src/modules/live/session/turn-taking.ts'

interface Message {
  readonly name: string
}

type Step = TurnTakingEvent<Message>

const a: Message = { name: 'a' }
const b: Message = { name: 'b' }

const sent = (message: Message): Step => ({ type: 'message-sent', message })
const output: Step = { type: 'output-received' }
const unprompted = (message: Message): Step => ({ type: 'unprompted-output-received', message })
const recognized: Step = { type: 'prompt-recognized' }
const calls = (...toolCallIds: string[]): Step => ({ type: 'calls-made', toolCallIds })
const result = (toolCallId: string, message: Message): Step => ({
  type: 'result-sent',
  toolCallId,
  message,
})
const held = (message: Message): Step => ({ type: 'result-held', message })
const heldSent = (message: Message): Step => ({ type: 'held-result-sent', message })
const cancelled = (toolCallId: string): Step => ({ type: 'call-cancelled', toolCallId })
const ignored = (message: Message): Step => ({ type: 'result-ignored', message })
const cutOff: Step = { type: 'turn-cut-off' }
const completed: Step = { type: 'turn-completed' }

interface Expected {
  /** The message that the model speaks for after the steps. */
  readonly speaker?: Message
  /** The messages whose reply is not complete. */
  readonly expected?: readonly Message[]
  readonly isBlocked?: boolean
}

function play(steps: readonly Step[], completesCalls: boolean) {
  const start: TurnTakingState<Message> = {
    pending: [],
    held: [],
    speaking: undefined,
    blockingCalls: new Set(),
    calls: 'none',
    completesCalls,
  }
  const state = steps.reduce(nextSpeaker, start)
  const { pending, speaking, blockingCalls, calls: progress } = state
  const turnTaking = new TurnTaking<Message>({ completesCalls })
  for (const step of steps) turnTaking.apply(step)
  const expected = [a, b].filter(
    (message) =>
      message === speaking?.message || pending.includes(message) || state.held.includes(message),
  )
  // The class reads the same from its state.
  expect([a, b].filter((message) => turnTaking.isReplyExpected(message))).toEqual(expected)
  expect(turnTaking.speaker).toBe(speaking?.message)
  return {
    speaker: speaking?.message.name,
    expected,
    isBlocked: progress === 'open' && blockingCalls.size > 0,
  }
}

const CASES: readonly (readonly [name: string, steps: readonly Step[], Expected])[] = [
  ['[LV1] output without a message has no speaker', [output], {}],
  ['[LV1] output belongs to the pending message', [sent(a), output], { speaker: a, expected: [a] }],
  ['[LV1] a completed turn is the whole reply', [sent(a), output, completed], {}],
  ['[LV1] a turn without output completes the first message', [sent(a), completed], {}],
  [
    '[LV1] unprompted output belongs to the new message',
    [output, unprompted(a)],
    { speaker: a, expected: [a] },
  ],
  [
    '[LV2] the model replies to the earliest message first',
    [sent(a), sent(b), output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV602] a result that is held back expects a reply',
    [sent(a), output, held(b), completed],
    { expected: [b] },
  ],
  [
    '[LV602] output before a held result is sent does not belong to it',
    [held(b), sent(a), output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV602] the reply to a held result follows the replies to earlier messages',
    [held(b), sent(a), heldSent(b), output, completed, output],
    { speaker: b, expected: [b] },
  ],
  [
    '[LV2] the next output belongs to the next message',
    [sent(a), sent(b), output, completed, output],
    { speaker: b, expected: [b] },
  ],
  [
    '[LV2] a message that is sent during a reply waits for the next turn',
    [sent(a), output, sent(b), output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV22] a reply that was cut off is repeated before later replies',
    [sent(a), output, sent(b), cutOff, output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV22] unprompted output that was cut off is not repeated',
    [unprompted(a), cutOff],
    { speaker: a, expected: [a] },
  ],
  [
    '[LV22] output whose prompt was transcribed later is repeated',
    [unprompted(a), recognized, cutOff, sent(b), output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV9] a turn is blocked while a call has no result',
    [sent(a), output, calls('1', '2'), result('1', a)],
    { speaker: a, expected: [a], isBlocked: true },
  ],
  [
    '[LV9] results of all calls unblock the turn',
    [sent(a), output, calls('1', '2'), result('1', a), result('2', a)],
    { speaker: a, expected: [a] },
  ],
  [
    '[LV9] an event without calls blocks nothing',
    [sent(a), output, calls()],
    { speaker: a, expected: [a] },
  ],
  [
    '[LV12] a cancelled call does not block the turn',
    [sent(a), output, calls('1'), cancelled('1')],
    { speaker: a, expected: [a] },
  ],
  [
    '[LV12] a response that the model ignores gets no reply',
    [sent(a), output, calls('1'), completed, result('1', a), sent(b), ignored(a), output],
    { speaker: b, expected: [b] },
  ],
  [
    '[LV960] a response that the model ignores does not continue its turn',
    [sent(a), output, calls('1'), result('1', a), ignored(a), completed],
    {},
  ],
  [
    '[LV9] the reply to results comes before the reply to a later message',
    [sent(a), output, calls('1'), completed, sent(b), result('1', a), output],
    { speaker: a, expected: [a, b] },
  ],
  [
    '[LV9] the reply to the result of a non-blocking call comes after earlier messages',
    [sent(a), output, completed, sent(b), result('1', a), output],
    { speaker: b, expected: [a, b] },
  ],
]

test.each(CASES)('%s', (_name, steps, { speaker, expected = [], isBlocked = false }) => {
  for (const completesCalls of [true, false]) {
    expect(play(steps, completesCalls)).toEqual({ speaker: speaker?.name, expected, isBlocked })
  }
})

const answeredCall = [sent(a), output, calls('1'), result('1', a)]

test('[LV1] a model that completes a turn with calls replies to the results in the next turn', () => {
  expect(play([...answeredCall, completed], true)).toMatchObject({ expected: [a] })
  expect(play([...answeredCall, completed, output, completed], true)).toMatchObject({
    expected: [],
  })
})

test('[LV1] a model that completes such a turn after the results replies in the same turn', () => {
  expect(play([...answeredCall, output, completed], false)).toMatchObject({ expected: [] })
})

test('[LV1] the assumption about a model is replaced by its behaviour', () => {
  // Output after the results, in the same turn.
  const continued = [...answeredCall, output, completed]
  expect(play([...continued, ...answeredCall, completed], true)).toMatchObject({ expected: [] })
  // A turn that completes while its call has no result.
  const completedEarly = [sent(a), output, calls('0'), completed, result('0', a), output, completed]
  expect(play([...completedEarly, ...answeredCall, completed], false)).toMatchObject({
    expected: [a],
  })
})
