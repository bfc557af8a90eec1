import { describe, expect, test } from 'vitest'

import { AdkError } from '../../src/client/index.ts'
import type { MessageView, PartView } from '../../src/client/connection/chat-messages.ts'
import type {
  AttachedSync,
  ChatView,
  SyncEffect,
  SyncEvent,
  SyncState,
} from '../../src/client/sync/sync-state.ts'
import { nextSync, shouldSend, START } from '../../src/client/sync/next-sync.ts'
import type { ResponseState } from '../../src/client/connection/response-states.ts'

const USER: MessageView = { id: 'u1', role: 'user', parts: [{ type: 'text' }] }

function assistant(id: string, ...parts: PartView[]): MessageView {
  return { id, role: 'assistant', parts }
}

/** A call of a tool in a state, with its approval. */
function call(state: string, approved?: boolean): PartView {
  const approval = { id: 'a1', ...(approved !== undefined && { approved }) }
  return { type: 'tool-pay', toolCallId: 'c1', state, approval }
}

const ASKED = [USER, assistant('m1', call('approval-requested'))]
const DECIDED = [USER, assistant('m1', call('approval-responded', true))]
const OUTPUT = { tool: 'locate', toolCallId: 'c1', output: 1 }
const LOCATED = [
  USER,
  assistant('m1', { type: 'tool-locate', toolCallId: 'c1', state: 'output-available' }),
]
const DECISION = { id: 'a1', approved: true }

interface View extends Partial<Omit<ChatView, 'responses'>> {
  readonly responses?: Record<string, ResponseState>
}

/** A chat at a moment. By default it is idle and shows a message. */
function view({ responses = {}, ...given }: View = {}): ChatView {
  return {
    messages: [USER],
    isBusy: false,
    hasFailed: false,
    hasOpenStream: false,
    responses: new Map(Object.entries(responses)),
    ...given,
  }
}

const BUSY = { isBusy: true, hasOpenStream: true }

function step(
  state: Partial<AttachedSync>,
  event: SyncEvent,
  chat: View = {},
): [state: SyncState, effects: readonly SyncEffect[]] {
  const [next, effects] = nextSync({ ...START, ...state }, event, view(chat))
  return [next, effects]
}

/** Passes events on, one after the other. Returns the types of all effects, and the last state. */
function run(
  events: readonly (readonly [event: SyncEvent, chat?: View])[],
  start: Partial<AttachedSync> = {},
): { state: SyncState; types: string[] } {
  let state: SyncState = { ...START, ...start }
  const types: string[] = []
  for (const [event, chat = {}] of events) {
    const [next, effects] = nextSync(state, event, view(chat))
    state = next
    types.push(...effects.map(({ type }) => type))
  }
  return { state, types }
}

const typesOf = (effects: readonly SyncEffect[]): string[] => effects.map(({ type }) => type)

const TURN = { type: 'feed-event', event: { type: 'turn', messageId: 'm2', turn: 't2' } } as const
const OPEN = { type: 'feed-event', event: { type: 'open', again: false } } as const
const IDLE = { type: 'chat-idle' } as const
const ENDED = { type: 'stream-ended', read: {} } as const
const FOLLOWING = { news: {} }

const stored = (position: string) => ({
  type: 'feed-event' as const,
  event: { type: 'stored' as const, position },
})

const loadedWith = (messages: readonly MessageView[], running = false) => ({
  type: 'loaded' as const,
  loaded: { messages, running },
})

/** The page shows the stored messages with these ids, up to a position. */
const baseOf = (position: string, ...ids: string[]) => ({ base: { position, ids: new Set(ids) } })

const queuedDecision = {
  state: 'queued',
  effect: { type: 'queue-decision', decision: DECISION },
} as const

const refused = (code: ConstructorParameters<typeof AdkError>[0]) => ({
  type: 'responses-refused' as const,
  ids: ['a1'],
  error: new AdkError(code, 'no'),
  isUnreported: true,
})

const changed = (state: string) => ({
  type: 'feed-event' as const,
  event: { type: 'approval' as const, approvalId: 'a1', state },
})

describe('duplicate clicks', () => {
  test.each([
    { name: 'an open approval', messages: ASKED, response: undefined, isSent: true },
    { name: 'a refused decision', messages: ASKED, response: 'refused', isSent: true },
    { name: 'a queued decision', messages: ASKED, response: 'queued', isSent: false },
    { name: 'a decision in flight', messages: ASKED, response: 'sent', isSent: false },
    { name: 'an accepted decision', messages: ASKED, response: 'accepted', isSent: false },
    { name: 'a decided approval', messages: DECIDED, response: undefined, isSent: false },
    { name: 'an approval of another chat', messages: [USER], response: undefined, isSent: false },
  ] as const)('[CL3] a click on $name sends: $isSent', ({ messages, response, isSent }) => {
    const responses = response ? { a1: response } : {}
    const chat = { ...BUSY, messages: [...messages], responses }
    const [, effects] = step({}, { type: 'decision-given', decision: DECISION }, chat)
    expect(typesOf(effects)).toEqual(isSent ? ['supplement', 'mark', 'send-decision'] : [])
  })

  test.each([
    { hasOpenStream: true, response: 'sent', effect: 'send-decision' },
    { hasOpenStream: false, response: 'queued', effect: 'queue-decision' },
  ])(
    '[CL2] [CL3] with an open stream ($hasOpenStream) a decision is $response',
    ({ hasOpenStream, response, effect }) => {
      const supplement = { args: { amount: 1 } }
      const event = { type: 'decision-given', decision: DECISION, supplement } as const
      const [, effects] = step({}, event, { messages: ASKED, hasOpenStream })
      expect(effects).toMatchObject([
        { type: 'supplement', decision: DECISION, supplement },
        { type: 'mark', ids: ['a1'], response },
        { type: effect, decision: DECISION },
      ])
    },
  )

  // The first chunks of a replayed message were read, and not yet the one that asks for approval.
  const REPLAYED = [
    USER,
    assistant('m1', { type: 'tool-pay', toolCallId: 'c1', state: 'input-streaming' }),
  ]
  const REPLAY = {
    type: 'chunk',
    chunk: { type: 'start', messageId: 'm1' },
    source: 'resumed',
  } as const
  const reported = (approved: boolean, state: string): MessageView[] => {
    const data = { approvalId: 'a1', toolCallId: 'c1', state }
    const report = { type: 'data-approval', data }
    return [USER, assistant('m1', call('approval-responded', approved), report)]
  }
  const SETTLED = reported(true, 'approved')
  const DENIED = reported(false, 'denied')
  const CLICK = { type: 'decision-given', decision: DECISION } as const
  const QUEUED = { a1: 'queued' } as const

  test('[CL390] a click during a replay is sent over an open stream', () => {
    const { types } = run([
      [REPLAY, { ...BUSY }],
      [CLICK, { ...BUSY, messages: REPLAYED }],
      [CLICK, { ...BUSY, messages: REPLAYED, responses: { a1: 'sent' } }],
    ])
    expect(types).toEqual(['supplement', 'mark', 'send-decision'])
  })

  test('[CL390] without an open stream, a click during a replay is queued when the approval is shown again', () => {
    const isBusy = true
    const { state, types } = run([
      [REPLAY, { isBusy }],
      [CLICK, { isBusy, messages: REPLAYED }],
      [CLICK, { isBusy, messages: REPLAYED, responses: QUEUED }],
      [ENDED, { isBusy, messages: ASKED, responses: QUEUED }],
      [IDLE, { messages: DECIDED, responses: QUEUED }],
      [IDLE, { messages: DECIDED, responses: { a1: 'sent' } }],
    ])
    expect(types.slice(0, 3)).toEqual(['supplement', 'mark', 'queue-decision'])
    expect(types.filter((type) => type === 'queue-decision')).toHaveLength(1)
    expect(state).toMatchObject({ outbox: new Map() })
  })

  test.each([
    { name: 'was decided elsewhere in the same way', messages: SETTLED, isRefused: false },
    { name: 'was denied elsewhere', messages: DENIED, isRefused: true },
    { name: 'did not return', messages: [USER], isRefused: true },
  ])('[CL390] a click during a replay whose approval $name', ({ messages, isRefused }) => {
    const { state, types } = run([
      [REPLAY, { isBusy: true }],
      [CLICK, { isBusy: true, messages: REPLAYED }],
      [IDLE, { messages, responses: QUEUED }],
      [IDLE, { messages }],
    ])
    const refusal = isRefused ? ['report-refusal'] : []
    expect(types).toEqual(['supplement', 'mark', 'forget', ...refusal])
    expect(state).toMatchObject({ outbox: new Map() })
  })

  test.each(['queued', 'sent', 'accepted'] as const)(
    '[CL12] a second output of a call has no effect: %s',
    (response) => {
      const event = { type: 'output-given', output: OUTPUT } as const
      expect(step({}, event, { responses: { c1: response } })[1]).toEqual([])
    },
  )

  test('[CL2] queued responses are sent in a request when the chat is idle, not before', () => {
    const event = { type: 'response-queued', id: 'a1' } as const
    const responses = { a1: 'queued' } as const
    const send = { type: 'send-responses', messageId: 'm1' }
    expect(step({}, event, { messages: DECIDED, responses })[1]).toContainEqual(send)
    expect(step({}, event, { messages: DECIDED, responses, isBusy: true })[1]).not.toContainEqual(
      send,
    )
  })

  test('[CL33] responses to an older message are sent when the stream has been read', () => {
    const messages = [...DECIDED, USER, assistant('m2')]
    const chat = { messages, responses: { a1: 'queued' } } as const
    const { types } = run([
      [ENDED, { ...chat, isBusy: true }],
      [IDLE, chat],
    ])
    expect(types).toEqual(['notify', 'send-responses'])
  })
})

describe('refused responses', () => {
  test('[CL4] a refused decision opens the approval again, in the messages and in the stream', () => {
    const chat = { ...BUSY, messages: DECIDED }
    const [, effects] = step({}, refused('bad-request'), chat)
    expect(typesOf(effects)).toEqual([
      'mark',
      'report-refusal',
      'mark',
      'push-chunk',
      'set-messages',
      'report-error',
    ])
    expect(effects).toContainEqual({
      type: 'set-messages',
      messages: [USER, assistant('m1', call('approval-requested'))],
    })
  })

  test.each([
    'approval-decided',
    'approval-expired',
    'approval-cancelled',
    'unknown-approval',
  ] as const)(
    '[CL32] after "%s" the stored messages are loaded; the approval is opened again if they do not help',
    (code) => {
      const event = refused(code)
      const [, effects] = step({}, event, { messages: DECIDED })
      expect(typesOf(effects)).toEqual(['mark', 'report-refusal', 'check-refusal'])
      const { ids, error, isUnreported } = event
      expect(effects.at(-1)).toEqual({
        type: 'check-refusal',
        refusal: { ids, error, isUnreported },
      })
      const checked = { ...event, type: 'refusal-checked' as const, isRunning: false }
      const unknown = step({}, { ...checked, known: [] }, { messages: DECIDED })[1]
      expect(typesOf(unknown)).toEqual(['mark', 'set-messages', 'report-error'])
      const known = step({}, { ...checked, known: ['m1'] }, { messages: DECIDED })[1]
      expect(typesOf(known)).toEqual(['report-error'])
      // The feed shows the outcome of the turn that is running, which the stored messages leave out.
      const running = { ...checked, known: [], isRunning: true }
      const followed = step(FOLLOWING, running, { messages: DECIDED })[1]
      expect(typesOf(followed)).toEqual(['report-error'])
      const unfollowed = step({}, running, { messages: DECIDED })[1]
      expect(typesOf(unfollowed)).toEqual(['report-error', 'load'])
    },
  )

  const VOTE = { type: 'decision-acknowledged', id: 'a1', approval: 'requested' } as const
  const NOT_FOUND = {
    ...refused('unknown-approval'),
    type: 'refusal-checked' as const,
    isRunning: false,
    known: [],
  }

  test('[CL9] one vote of several leaves the approval open', () => {
    const [, effects] = step({}, VOTE, { ...BUSY, messages: DECIDED })
    expect(typesOf(effects)).toEqual(['mark', 'push-chunk', 'set-messages'])
  })

  test.each([
    { name: 'a rejected decision', event: refused('bad-request') },
    { name: 'a decision that was not found', event: NOT_FOUND },
    { name: 'one vote of several', event: VOTE },
  ])('[CL4] $name is not sent again, although the stream shows it again', ({ event }) => {
    const chat = { ...BUSY, messages: DECIDED, responses: { a1: 'sent' } } as const
    const [, effects] = step({}, event, chat)
    const responses = new Map<string, ResponseState>(Object.entries(chat.responses))
    for (const effect of effects) {
      if (effect.type === 'mark') for (const id of effect.ids) responses.set(id, effect.response)
      if (effect.type === 'forget') responses.delete(effect.id)
    }
    expect(shouldSend(DECIDED.at(-1), responses)).toBe(false)
    // The person may decide again.
    const again = { ...chat, messages: ASKED, responses: Object.fromEntries(responses) }
    const click = { type: 'decision-given', decision: DECISION } as const
    expect(typesOf(step({}, click, again)[1])).toContain('send-decision')
  })

  test('[CL26] an output that could not be sent is sent again, with growing delays', () => {
    const failed = { type: 'output-failed', output: OUTPUT, error: new TypeError('lost') } as const
    const [first, effects] = step({}, failed)
    expect(effects).toContainEqual({ type: 'schedule-retry', delayMs: 500 })
    const [second, retried] = nextSync(first, { type: 'retry-due' }, view())
    expect(retried).toMatchObject([
      { type: 'cancel-retry' },
      { type: 'mark', ids: ['c1'], response: 'sent' },
      { type: 'send-output', output: OUTPUT, isShown: true },
    ])
    const [third, again] = nextSync(second, failed, view())
    expect(again).toContainEqual({ type: 'schedule-retry', delayMs: 1_000 })
    const open = { type: 'connection-opened' } as const
    expect(typesOf(nextSync(third, open, view())[1])).toContain('send-output')
    expect(nextSync(second, open, view())[1]).toEqual([])
  })

  test.each([
    { code: 'unavailable', isRetried: true },
    { code: 'too-fast', isRetried: true },
    { code: 'bad-request', isRetried: false },
    { code: 'unknown-call', isRetried: false },
  ] as const)('[CL26] an output that fails with "$code" is sent again: $isRetried', (given) => {
    const error = new AdkError(given.code, 'no')
    const [, effects] = step({}, { type: 'output-failed', output: OUTPUT, error })
    expect(typesOf(effects).includes('schedule-retry')).toBe(given.isRetried)
    const refusedMark = { type: 'mark', ids: ['c1'], response: 'refused' }
    expect(effects.some((effect) => JSON.stringify(effect) === JSON.stringify(refusedMark))).toBe(
      !given.isRetried,
    )
  })
})

describe('stored messages', () => {
  test.each([
    { reported: 'requested', isSent: true },
    { reported: 'approved', isSent: false },
    { reported: 'denied', isSent: false },
  ])(
    '[CV797] a decision that this page did not make is sent if the server reports $reported: $isSent',
    ({ reported, isSent }) => {
      const data = { toolCallId: 'c1', state: reported }
      const report = { type: 'data-approval', data }
      const last = assistant('m1', call('approval-responded', reported !== 'denied'), report)
      expect(shouldSend(last, new Map())).toBe(isSent)
    },
  )
})

describe('lost connections', () => {
  test.each(['before', 'after'])(
    '[CL2] the outcome of a decision that is acknowledged %s its stream has been read is loaded, once',
    (when) => {
      const acknowledged = {
        type: 'decision-acknowledged',
        id: 'a1',
        approval: 'approved',
      } as const
      const accepted = { messages: DECIDED, responses: { a1: 'accepted' } } as const
      const sent = { messages: DECIDED, responses: { a1: 'sent' } } as const
      const { types, state } = run(
        when === 'before'
          ? [
              [acknowledged, { ...sent, ...BUSY }],
              [ENDED, { ...accepted, isBusy: true }],
              [IDLE, accepted],
            ]
          : [
              [ENDED, { ...sent, isBusy: true }],
              [IDLE, sent],
              [acknowledged, sent],
            ],
      )
      expect(types.filter((type) => type === 'load')).toEqual(['load'])
      expect(state).toMatchObject({ catchUp: { state: 'loading', isDue: false } })
    },
  )

  test('[CL2] without a way to load, the outcome is read from the running turn, if there is one', () => {
    const chat = { messages: DECIDED, responses: { a1: 'accepted' } } as const
    const nothing = { type: 'loaded', loaded: undefined } as const
    const { types, state } = run(
      [
        [IDLE, chat],
        [nothing, chat],
        [{ type: 'turn-read', wasRunning: false }, chat],
        [nothing, chat],
      ],
      { stream: { end: 'ended' } },
    )
    expect(types).toEqual(['notify', 'load', 'set-messages', 'notify', 'resume', 'load'])
    expect(state).toMatchObject({ catchUp: { state: 'current', isDue: false } })
  })

  test('[CL2] an output that a stream has reported is not looked for', () => {
    const accepted = { messages: LOCATED, responses: { c1: 'accepted' } } as const
    const chunk = { type: 'tool-output-available', toolCallId: 'c1', output: 1 } as const
    const reported = [{ type: 'chunk', chunk, source: 'requested' } as const, accepted] as const
    const start = { outbox: new Map([['c1', { state: 'unreported' } as const]]) }
    const rest = [
      [ENDED, { ...accepted, isBusy: true }],
      [IDLE, accepted],
    ] as const
    expect(run(rest, start).types).toContain('load')
    expect(run([reported, ...rest], start).types).not.toContain('load')
  })

  test('[CL5] a decision that the server reports is shown before its outcome', () => {
    const data = { approvalId: 'a1', toolCallId: 'c1', state: 'denied', reason: 'no' }
    const chunk = { type: 'data-approval', id: 'a1', data } as never
    const [, effects] = step({}, { type: 'chunk', chunk, source: 'requested' }, { messages: ASKED })
    expect(effects).toEqual([
      { type: 'mark', ids: ['a1'], response: 'accepted' },
      { type: 'show-decision', decision: { id: 'a1', approved: false, reason: 'no' } },
      { type: 'notify' },
    ])
  })

  test('[CL5] a call that ended undecided loses its approval when the stream has been read', () => {
    const messages = [USER, assistant('m1', call('output-error'))]
    const [, effects] = step({ stream: { end: 'ended' } }, IDLE, { messages })
    const part = { type: 'tool-pay', toolCallId: 'c1', state: 'output-error' }
    expect(effects[0]).toEqual({ type: 'set-messages', messages: [USER, assistant('m1', part)] })
  })

  test('[CL5] a call that was decided and ended in one burst keeps the decision that the server reported', () => {
    const data = { approvalId: 'a1', toolCallId: 'c1', state: 'denied' }
    const report = { type: 'data-approval', data }
    const messages = [USER, assistant('m1', call('output-denied'), report)]
    const [, effects] = step({ stream: { end: 'ended' } }, IDLE, { messages })
    const settled = [USER, assistant('m1', call('output-denied', false), report)]
    expect(effects[0]).toEqual({ type: 'set-messages', messages: settled })
  })

  test('[CL21] a feed that is back catches up', () => {
    const lost = { type: 'lost', attempt: 1, retryAt: 0, error: undefined } as const
    const again = { ...OPEN, event: { type: 'open', again: true } } as const
    const { types } = run([[{ type: 'feed-event', event: lost }], [again]], FOLLOWING)
    expect(types).toEqual(['load'])
  })
})

describe('two tabs', () => {
  test('[CL21] a turn of another tab is loaded when the chat is idle, and later when it is busy', () => {
    expect(typesOf(step({}, TURN)[1])).toEqual(['load'])
    const { types: effects } = run([[TURN, BUSY], [ENDED, BUSY], [IDLE]])
    expect(effects).toEqual(['notify', 'load'])
  })

  test.each(['feed first', 'stream first', 'feed last'])(
    '[CL21] a turn of this tab is not read twice: %s',
    (order) => {
      const chunk = { type: 'start', messageId: 'm2' } as const
      const own = [{ type: 'chunk', chunk, source: 'requested' } as const, BUSY] as const
      const reported = [TURN, order === 'feed last' ? {} : BUSY] as const
      const ended = [{ type: 'stream-ended', read: { turn: 't2' } } as const, BUSY] as const
      const orders = {
        'feed first': [reported, own, ended, [IDLE]],
        'stream first': [own, reported, ended, [IDLE]],
        'feed last': [own, ended, [IDLE], reported],
      } as const
      expect(run(orders[order as keyof typeof orders], FOLLOWING).types).toEqual(['notify'])
    },
  )

  test('[CL21] a turn that is shown already is not loaded', () => {
    expect(step({ shown: { messageIds: new Set(['m2']) } }, TURN)[1]).toEqual([])
  })

  test('[CL21] an approval that is decided elsewhere is loaded; one that is requested is not', () => {
    expect(typesOf(step({}, changed('denied'))[1])).toEqual(['load'])
    expect(step({}, changed('requested'))[1]).toEqual([])
  })

  test.each(['queued', 'sent'] as const)(
    '[CL21] nothing is loaded over a response that is %s',
    (response) => {
      const chat = { messages: DECIDED, responses: { a1: response } }
      const [state, effects] = step({}, TURN, chat)
      expect(effects).toEqual([])
      const later = nextSync(
        state,
        IDLE,
        view({ messages: DECIDED, responses: { a1: 'accepted' } }),
      )
      expect(typesOf(later[1])).toEqual(['load'])
    },
  )

  test('[CL21] events during a catch-up lead to one more, not to several', () => {
    const messages = [USER]
    const { state, types } = run([
      [TURN, { messages }],
      [TURN, { messages }],
      [OPEN, { messages }],
      [loadedWith([USER]), { messages }],
    ])
    expect(types).toEqual(['load', 'load'])
    expect(state).toMatchObject({ catchUp: { state: 'loading', isDue: false } })
  })
})

describe('reloads', () => {
  const messages = [USER]
  const loading = { catchUp: { state: 'loading', shown: messages, isDue: false } } as const

  test.each([
    { name: 'the same messages', stored: [USER], effects: [] },
    { name: 'a new message', stored: [USER, assistant('m2')], effects: ['set-messages', 'notify'] },
  ])('[CL21] $name: $effects', ({ stored: now, effects }) => {
    const [state, done] = step(loading, loadedWith(now), { messages })
    expect(typesOf(done)).toEqual(effects)
    expect(state).toMatchObject({ catchUp: { state: 'current' } })
  })

  test.each([
    { name: 'the chat is busy', chat: { messages, isBusy: true }, effects: [] },
    { name: 'its messages have changed', chat: { messages: [USER] }, effects: ['load'] },
  ])('[CL21] what was loaded is dropped if $name', ({ chat, effects }) => {
    expect(typesOf(step(loading, loadedWith([]), chat)[1])).toEqual(effects)
  })

  test.each(['loaded', 'reloaded'] as const)(
    '[CL21] a message that could not be sent stays on the page: %s',
    (type) => {
      const unsent: MessageView = { id: 'u2', role: 'user', parts: [] }
      const shown = [USER, unsent]
      const start = { catchUp: { state: 'loading', shown, isDue: false } } as const
      const event = { type, loaded: { messages: [USER, assistant('m2')], running: false } } as const
      const [, effects] = step(start, event, { messages: shown, hasFailed: true })
      expect(effects[0]).toEqual({
        type: 'set-messages',
        messages: [USER, assistant('m2'), unsent],
      })
    },
  )

  test.each(['loaded', 'reloaded'] as const)(
    '[CL903] a failed reply that was replaced elsewhere leaves the page: %s',
    (type) => {
      const shown = [USER, assistant('m1')]
      const catchUp = { state: 'loading', shown, isDue: false } as const
      const replaced = [USER, assistant('m2')]
      const loaded = { messages: replaced, running: false, position: '2.f' }
      const start = { catchUp, ...baseOf('1.e', 'u1', 'm1') }
      const [, effects] = step(start, { type, loaded }, { messages: shown, hasFailed: true })
      expect(effects[0]).toEqual({ type: 'set-messages', messages: replaced })
    },
  )

  test('[CL21] [CL12] a running turn is read after the stored messages, whose calls may have changed', () => {
    const [state, effects] = step(loading, loadedWith(messages, true), { messages })
    const shown = { type: 'set-messages', messages }
    expect(effects).toEqual([shown, { type: 'notify' }, { type: 'resume' }])
    expect(state).toMatchObject({ catchUp: { state: 'reading' } })
  })

  test('[CL903] a message that could not be sent keeps its error while a turn of another page is running', () => {
    const unsent: MessageView = { id: 'u2', role: 'user', parts: [] }
    const shown = [USER, unsent]
    const start = { catchUp: { state: 'loading', shown, isDue: false } } as const
    const known = [USER, { ...USER, id: 'u3' }]
    const event = loadedWith(known, true)
    const [state, effects] = step(start, event, { messages: shown, hasFailed: true })
    expect(effects[0]).toEqual({ type: 'set-messages', messages: [...known, unsent] })
    // The AI SDK would clear the error when it reads the turn.
    expect(typesOf(effects)).toEqual(['set-messages', 'notify', 'schedule-retry'])
    expect(state).toMatchObject({ catchUp: { state: 'current' } })
  })

  test.each([
    { keepsEdit: true, running: true },
    { keepsEdit: true, running: false },
    { keepsEdit: false, running: false },
  ])(
    '[CL903] an edited message that could not be sent stays with its error, until the server refuses it: %o',
    ({ keepsEdit, running }) => {
      const parts: readonly PartView[] = [{ type: 'text', text: 'Changed.' } as PartView]
      const shown: MessageView[] = [{ ...USER, parts }]
      const start = { catchUp: { state: 'loading', shown, isDue: false } } as const
      const known = [USER, assistant('m1'), { ...USER, id: 'u2' }]
      const chat = { messages: shown, hasFailed: true, keepsEdit }
      const types = typesOf(step(start, loadedWith(known, running), chat)[1])
      expect(types).not.toContain('resume')
      const reloaded = step({}, { ...loadedWith(known, running), type: 'reloaded' }, chat)[1]
      expect(reloaded[0]).toEqual({ type: 'set-messages', messages: keepsEdit ? shown : known })
    },
  )

  test('[CL21] [CL33] a running turn above the last message is read into its place', () => {
    const shown = [USER, assistant('m1'), { ...USER, id: 'u2' }]
    const start = { catchUp: { state: 'loading', shown, isDue: false } } as const
    const chat = { messages: shown }
    const effects = step(start, loadedWith([USER], true), chat)[1]
    expect(effects).toEqual([{ type: 'read-turn', messageId: 'm1' }])
  })

  test.each([true, false])(
    '[CL21] after reading, it loads again; a turn was running: %s',
    (wasRunning) => {
      const start = { catchUp: { state: 'reading', isDue: false } } as const
      const [state, effects] = step(start, { type: 'turn-read', wasRunning })
      expect(typesOf(effects)).toEqual(['load'])
      expect(state).toMatchObject({ catchUp: { state: wasRunning ? 'loading' : 'checking' } })
    },
  )

  test.each([true, false])(
    '[CL21] it does not wait for a turn that it cannot read, and loads it later; still running: %s',
    (isRunning) => {
      const start = { catchUp: { state: 'checking', shown: messages, isDue: false } } as const
      const event = loadedWith([USER, assistant('m2')], isRunning)
      const [state, effects] = step(start, event, { messages })
      expect(typesOf(effects)).toEqual(isRunning ? ['schedule-retry'] : ['set-messages', 'notify'])
      expect(state).toMatchObject({ catchUp: { state: 'current' } })
    },
  )

  test('[CL21] a failed load is reported, and the next event tries again', () => {
    const error = new TypeError('network')
    const [state, effects] = step(loading, { type: 'catch-up-failed', error })
    expect(effects).toEqual([{ type: 'report-error', error }])
    expect(typesOf(nextSync(state, TURN, view())[1])).toEqual(['load'])
  })

  test.each([
    { isRunning: true, isBusy: false, isMerged: true },
    { isRunning: false, isBusy: true, isMerged: true },
    { isRunning: false, isBusy: false, isMerged: false },
  ])(
    '[CL7] what the server leaves out stays while it is written: %o',
    ({ isRunning, isBusy, isMerged }) => {
      const shown = [USER, assistant('m1')]
      const event = { type: 'reloaded', loaded: { messages: [USER], running: isRunning } } as const
      const [, effects] = step({}, event, { messages: shown, isBusy })
      expect(effects[0]).toEqual({ type: 'set-messages', messages: isMerged ? shown : [USER] })
    },
  )

  test.each(['reloaded', 'loaded'] as const)(
    '[CL915] a message that was stopped before a server received it stays, and says so: %s',
    (type) => {
      const stopped = { ...USER, id: 'u2', metadata: { stopped: true, unsent: false } }
      const removed = { ...USER, id: 'u3', metadata: { stopped: true } }
      const shown = [USER, assistant('m1'), removed, stopped]
      const chat = { messages: shown }
      const start = { catchUp: { state: 'loading', shown, isDue: false } } as const
      const now = [USER, assistant('m1'), assistant('m2')]
      const [, effects] = step(start, { type, loaded: { messages: now, running: false } }, chat)
      const unsent = { ...stopped, metadata: { stopped: true, unsent: true } }
      const kept = [USER, assistant('m1'), unsent, assistant('m2')]
      expect(effects[0]).toEqual({ type: 'set-messages', messages: kept })
      const loaded = { messages: [...now, stopped], running: false }
      const known = step(start, { type, loaded }, chat)
      expect(known[1][0]).toEqual({ type: 'set-messages', messages: [...now, stopped] })
    },
  )

  test.each(['queued', 'sent', 'accepted', 'refused'] as const)(
    '[CL900] the server reports an approval as open that this page has decided: %s',
    (response) => {
      const chat = { messages: DECIDED, isBusy: true, responses: { a1: response } }
      const event = { type: 'reloaded', loaded: { messages: ASKED, running: false } } as const
      const [, effects] = step({}, event, chat)
      const isKept = response === 'queued' || response === 'sent'
      expect(effects[0]).toEqual({ type: 'set-messages', messages: isKept ? DECIDED : ASKED })
    },
  )

  test('[CL900] an unconfirmed decision does not answer a second approval of the same call', () => {
    const again: PartView = { ...call('approval-requested'), approval: { id: 'a2' } }
    const asked = [USER, assistant('m1', again)]
    const chat = { messages: DECIDED, responses: { a1: 'sent' } } as const
    const event = { type: 'reloaded', loaded: { messages: asked, running: false } } as const
    expect(step({}, event, chat)[1][0]).toEqual({ type: 'set-messages', messages: asked })
  })

  test.each([true, false])(
    '[CL900] a decision that was made while the stream was open is sent when it has ended; failed: %s',
    (hasFailed) => {
      const chat = { messages: DECIDED, hasFailed, responses: { a1: 'queued' } } as const
      const [, effects] = step({ stream: { end: 'ended' } }, { type: 'chat-idle' }, chat)
      // If the stream has not failed, the AI SDK sends it by itself.
      const expected = hasFailed ? [{ type: 'send-responses', messageId: 'm1' }] : []
      expect(effects.filter(({ type }) => type === 'send-responses')).toEqual(expected)
    },
  )

  test('[CL900] a queued decision that a replayed stream has removed from the messages is queued again', () => {
    const chat = { messages: ASKED, responses: { a1: 'queued' } } as const
    const outbox = new Map([['a1', queuedDecision]])
    const start = { stream: { end: 'ended' }, outbox } as const
    const [, effects] = step(start, { type: 'chat-idle' }, chat)
    expect(effects[0]).toEqual({ type: 'queue-decision', decision: DECISION })
  })

  test('[CL900] a queued output that a replayed stream has removed from the messages is queued again', () => {
    const waiting = call('input-available')
    const queued = { c1: 'queued' } as const
    const { types, state } = run([
      [{ type: 'output-given', output: OUTPUT }, { isBusy: true }],
      [IDLE, { messages: LOCATED, responses: queued }],
      [IDLE, { messages: [USER, assistant('m1', waiting)], responses: queued }],
      [IDLE, { messages: LOCATED, responses: { c1: 'sent' } }],
    ])
    expect(types.filter((type) => type === 'queue-output')).toHaveLength(2)
    expect(state).toMatchObject({ outbox: new Map() })
  })

  test.each(['at once', 'after another event'])(
    '[CL900] a queued output that was refused for the moment is queued again when a replayed stream removes it, refused %s',
    (when) => {
      const waiting = [USER, assistant('m1', call('input-available'))]
      const sent = { messages: LOCATED, isBusy: true, responses: { c1: 'sent' } } as const
      const rejected = { ...sent, responses: { c1: 'refused' } } as const
      const error = new AdkError('unavailable', 'The server is not available.')
      const events: (readonly [SyncEvent, View?])[] = [
        [{ type: 'output-given', output: OUTPUT }, { isBusy: true }],
        ...(when === 'at once' ? [] : [[{ type: 'connection-opened' }, sent] as const]),
        [{ type: 'responses-refused', ids: ['c1'], error, isUnreported: false }, rejected],
        [IDLE, { messages: LOCATED, hasFailed: true, responses: { c1: 'queued' } }],
      ]
      const replayed = { messages: waiting, responses: { c1: 'queued' } } as const
      const { state } = run(events)
      expect(state).toMatchObject({ retry: { isScheduled: true } })
      if (state.state === 'detached') throw new Error('The chat is attached.')
      expect(step(state, IDLE, replayed)[1][0]).toEqual({ type: 'queue-output', output: OUTPUT })
    },
  )

  test('[CL900] a response is sent although the chat read nothing, and later if it is busy', () => {
    const chat = { messages: DECIDED, responses: { a1: 'queued' } } as const
    const send = { type: 'send-responses', messageId: 'm1' }
    expect(step({}, IDLE, chat)[1]).toEqual([send])
    const busy = { ...chat, isBusy: true }
    expect(typesOf(step({}, { type: 'retry-due' }, busy)[1])).toEqual(['schedule-retry'])
  })

  test('[CL900] the server has the outcome of a decision that was not confirmed', () => {
    const ended = [USER, assistant('m1', call('output-available', true))]
    const chat = { messages: DECIDED, responses: { a1: 'sent' } } as const
    const event = { type: 'reloaded', loaded: { messages: ended, running: false } } as const
    expect(step({}, event, chat)[1][0]).toEqual({ type: 'set-messages', messages: ended })
  })
})

describe('turns that the chat did not request', () => {
  test('[CL13] speech is shown before the reply to it, text after it', () => {
    const message = { id: 'u2', role: 'user' as const, parts: [] }
    const shown = [USER, assistant('m2')]
    const start = { shown: { messageIds: new Set<string>(), spokenReplyId: 'm2' } }
    const place = (source: 'spoken' | 'written'): number => {
      const [, effects] = step(
        start,
        { type: 'user-message', message, source },
        { messages: shown },
      )
      const [effect] = effects
      return effect?.type === 'set-messages'
        ? effect.messages.findIndex(({ id }) => id === 'u2')
        : -1
    }
    expect([place('spoken'), place('written')]).toEqual([1, 2])
  })
})

test('[CL21] a turn of the chat that failed and continues elsewhere is loaded', () => {
  const chunk = { type: 'start', messageId: 'm2' } as const
  const { types } = run([
    [{ type: 'feed-started' }],
    [{ type: 'chunk', chunk, source: 'requested' }, BUSY],
    [ENDED, BUSY],
    [IDLE, { hasFailed: true }],
    [TURN, { hasFailed: true }],
  ])
  expect(types).toContain('load')
})

const startOf = (messageId: string) =>
  ({ type: 'chunk', chunk: { type: 'start', messageId }, source: 'requested' }) as const

const readFrom = (before: string, after: string) =>
  ({ type: 'stream-ended', read: { turn: 't2', positions: { before, after } } }) as const

describe('positions', () => {
  const SHOWN = [USER, assistant('m1')]
  const AT_1 = { ...FOLLOWING, ...baseOf('1.e', 'u1', 'm1') }

  test.each([
    { name: 'the position of the page', position: '1.e', effects: [] },
    { name: 'another position', position: '2.f', effects: [{ type: 'load', after: '1.e' }] },
  ])('[CL1210] the feed reports $name', ({ position, effects }) => {
    expect(step(AT_1, stored(position), { messages: SHOWN })[1]).toEqual(effects)
  })

  test.each([
    { name: 'a new message, read whole', writes: 'm2', before: '1.e', isTrusted: true },
    { name: 'the rest of a message', writes: 'm1', before: '1.e', isTrusted: false },
    { name: 'a turn after one that the page lacks', writes: 'm2', before: '0.d', isTrusted: false },
  ])(
    '[CL1211] after $name, the stored messages are not loaded again: $isTrusted',
    ({ writes, before, isTrusted }) => {
      const now = { messages: [...SHOWN, { ...USER, id: 'u2' }, assistant('m2')] }
      for (const order of ['feed first', 'feed last']) {
        const events = [
          [startOf(writes), { ...BUSY, messages: SHOWN }],
          ...(order === 'feed first' ? ([[stored('2.f'), { ...BUSY, ...now }]] as const) : []),
          [readFrom(before, '2.f'), { ...BUSY, ...now }],
          [IDLE, now],
          ...(order === 'feed last' ? ([[stored('2.f'), now]] as const) : []),
        ] as const
        const { state, types } = run(events, AT_1)
        expect(types.filter((type) => type === 'load')).toEqual(isTrusted ? [] : ['load'])
        const ids = isTrusted ? ['u1', 'm1', 'u2', 'm2'] : ['u1', 'm1']
        expect(state).toMatchObject(baseOf(isTrusted ? '2.f' : '1.e', ...ids))
      }
    },
  )

  test.each([
    { name: 'with a feed', start: AT_1, events: [[stored('2.f')]] },
    { name: 'without a feed', start: baseOf('1.e', 'u1', 'm1'), events: [] },
  ] as const)(
    '[CL903] a message that was sent while older messages were loaded stays, and all are loaded again, $name',
    ({ start, events }) => {
      const messages = [...SHOWN, { ...USER, id: 'u2' }, assistant('m2')]
      const { state } = run(
        [
          [startOf('m2'), { ...BUSY, messages: SHOWN }],
          [readFrom('1.e', '2.f'), { ...BUSY, messages }],
          [IDLE, { messages }],
          ...events.map(([event]) => [event, { messages }] as const),
        ],
        start,
      )
      const loaded = { messages: SHOWN, running: false, position: '1.e' }
      const event = { type: 'reloaded', loaded, shown: SHOWN } as const
      expect(nextSync(state, event, view({ messages }))[1]).toEqual([
        { type: 'set-messages', messages },
        { type: 'notify' },
        { type: 'load', after: undefined },
      ])
    },
  )

  test('[CL903] what the feed has reported after messages were loaded elsewhere is loaded', () => {
    const loaded = { messages: SHOWN, running: false, position: '1.e' }
    const start = { ...AT_1, news: { position: '2.f' } }
    const { types } = run([[{ type: 'reloaded', loaded }, { messages: SHOWN }]], start)
    expect(types).toEqual(['set-messages', 'notify', 'load'])
  })

  test('[CL1602] a message that could not be sent is shown after a reply that was read meanwhile', () => {
    const unsent = { ...USER, id: 'u2' }
    const reply = assistant('m1')
    const chat = { messages: [USER, unsent, reply], hasFailed: true }
    const [loading] = step(FOLLOWING, OPEN, chat)
    const [, effects] = nextSync(loading, loadedWith([USER, reply]), view(chat))
    expect(effects).toContainEqual({ type: 'set-messages', messages: [USER, reply, unsent] })
  })

  test('[CL1800] after a stop, all stored messages are loaded: the page has marked one of them', () => {
    const [, effects] = step(AT_1, { type: 'stopped' }, { messages: SHOWN })
    expect(effects).toContainEqual({ type: 'load', after: undefined })
  })

  test('[CL1800] a mark that the page makes after the server has handled the stop is compared with what is stored', () => {
    const chat = { messages: SHOWN }
    const { types } = run(
      [
        [{ type: 'stopped' }, chat],
        [loadedWith(SHOWN), chat],
        [{ type: 'marked' }, chat],
        [{ type: 'retry-due' }, chat],
      ],
      AT_1,
    )
    expect(types.filter((type) => type !== 'cancel-retry')).toEqual([
      'load',
      'schedule-retry',
      'load',
    ])
  })

  test.each([
    { what: 'the rest of a message', source: 'requested', has: 'something', load: '1.e' },
    { what: 'the rest of a message', source: 'requested', has: 'nothing', load: undefined },
    { what: 'a resumed message', source: 'resumed', has: 'something', load: '1.e' },
    { what: 'a resumed message', source: 'resumed', has: 'nothing', load: undefined },
  ] as const)(
    '[CL1211] after $what whose turn has stored $has, all that may be wrong is loaded',
    ({ source, has, load }) => {
      const after = has === 'something' ? '2.f' : '1.e'
      const { state, types } = run(
        [
          [
            { ...startOf('m1'), source },
            { ...BUSY, messages: SHOWN },
          ],
          [readFrom('1.e', after), { ...BUSY, messages: SHOWN }],
        ],
        AT_1,
      )
      expect(types).toEqual([])
      const [, effects] = nextSync(state, IDLE, view({ messages: SHOWN }))
      expect(effects).toContainEqual({ type: 'load', after: load })
    },
  )

  test.each([
    { name: 'reply', other: assistant('m9') },
    // Its error is gone with the next request, or the page has removed it.
    { name: 'message of the person', other: { ...USER, id: 'u9' } },
  ])(
    '[CL1211] after a new message, a page that shows another $name that is not stored loads all of them',
    ({ other }) => {
      const messages = [...SHOWN, other, { ...USER, id: 'u2' }, assistant('m2')]
      const { state } = run(
        [
          [startOf('m2'), { ...BUSY, messages: SHOWN }],
          [readFrom('1.e', '2.f'), { ...BUSY, messages }],
        ],
        AT_1,
      )
      const [, effects] = nextSync(state, IDLE, view({ messages }))
      expect(effects).toContainEqual({ type: 'load', after: undefined })
    },
  )

  test('[CL1211] a turn that failed is followed by a load', () => {
    const { types } = run(
      [
        [startOf('m2'), { ...BUSY, messages: SHOWN }],
        [readFrom('1.e', '2.f'), { ...BUSY, messages: SHOWN }],
        [IDLE, { messages: SHOWN, hasFailed: true }],
        [stored('2.f'), { messages: SHOWN, hasFailed: true }],
      ],
      AT_1,
    )
    expect(types).toContain('load')
  })

  test('[CL1210] what has changed replaces its messages, and the rest stays the same', () => {
    const now = assistant('m1', call('output-available', true))
    const added = [{ ...USER, id: 'u2' }, assistant('m2')]
    const loading = { ...AT_1, catchUp: { state: 'loading', shown: SHOWN, isDue: false } } as const
    const loaded = { messages: [now, ...added], running: false, position: '3.g', after: '1.e' }
    const [state, effects] = step(loading, { type: 'loaded', loaded }, { messages: SHOWN })
    expect(effects[0]).toEqual({ type: 'set-messages', messages: [USER, now, ...added] })
    expect(state).toMatchObject({
      ...baseOf('3.g', 'u1', 'm1', 'u2', 'm2'),
      news: { position: '3.g' },
    })
    const [first] = effects
    // The same object, so that the page does not render it again.
    expect(first?.type === 'set-messages' && first.messages[0]).toBe(USER)
  })

  test('[CL1210] [CL33] the rest of an older message, which the AI SDK adds at the end, is shown in its place', () => {
    const [older, newer] = [assistant('m1', call('approval-responded', true)), assistant('m2')]
    const ended = assistant('m1', call('output-available', true))
    const messages = [USER, older, newer, ended]
    const base = baseOf('1.e', 'u1', 'm1', 'm2')
    const catchUp = { state: 'loading', shown: messages, isDue: false } as const
    const loaded = { messages: [ended], running: false, position: '2.f', after: '1.e' }
    const [, effects] = step({ ...base, catchUp }, { type: 'loaded', loaded }, { messages })
    expect(effects[0]).toEqual({ type: 'set-messages', messages: [USER, ended, newer] })
  })

  test('[CL1210] messages that the server does not have leave the page, unless they wait to be sent', () => {
    const lost = assistant('m9')
    const messages = [...SHOWN, lost]
    const loading = {
      ...AT_1,
      catchUp: { state: 'loading', shown: messages, isDue: false },
    } as const
    const loaded = { messages: [], running: false, position: '1.e', after: '1.e' }
    const [, effects] = step(loading, { type: 'loaded', loaded }, { messages })
    expect(effects[0]).toEqual({ type: 'set-messages', messages: SHOWN })
  })

  test('[CL1210] a reply that is replaced while another one is written leaves the page', () => {
    const asked = { ...USER, id: 'u2' }
    const [before, after] = [assistant('m2'), assistant('m3')]
    const loaded = { position: '1.e', after: '1.e', messages: [asked, before], running: true }
    const both = [...SHOWN, asked, before, after]
    const { state } = run(
      [
        [stored('2.f'), { messages: SHOWN }],
        // The turn of the new reply runs, and has not removed the earlier one.
        [{ type: 'loaded', loaded }, { messages: SHOWN }],
        [{ type: 'turn-read', wasRunning: true }, { messages: both }],
      ],
      AT_1,
    )
    const now = { position: '3.g', after: '1.e', messages: [asked, after], running: false }
    const [, effects] = nextSync(state, { type: 'loaded', loaded: now }, view({ messages: both }))
    const messages = [...SHOWN, asked, after]
    expect(effects).toContainEqual({ type: 'set-messages', messages })
  })

  test('[CL1210] a page that lacks one of its messages loads all of them', () => {
    const [, effects] = step(AT_1, stored('2.f'), { messages: [USER] })
    expect(effects).toEqual([{ type: 'load', after: undefined }])
  })

  test('[CL1210] what is reported while the page loads is loaded after it, and once', () => {
    const loaded = { messages: [], running: false, position: '2.f', after: '1.e' }
    const messages = SHOWN
    const { types } = run(
      [
        [stored('2.f'), { messages }],
        [stored('3.g'), { messages }],
        [{ type: 'loaded', loaded }, { messages }],
        [{ type: 'loaded', loaded: { ...loaded, position: '3.g', after: '2.f' } }, { messages }],
      ],
      AT_1,
    )
    expect(types).toEqual(['load', 'load'])
  })

  test('[CL1210] a page that becomes idle while it loads what was reported does not load again', () => {
    const messages = [USER, assistant('m2')]
    const loaded = { messages, running: false, position: '2.f' }
    const { types } = run(
      [
        [startOf('m2'), BUSY],
        [readFrom('0.d', '2.f'), { ...BUSY, messages }],
        [stored('2.f'), { messages }],
        [IDLE, { messages }],
        [{ type: 'loaded', loaded }, { messages }],
      ],
      FOLLOWING,
    )
    expect(types.filter((type) => type === 'load')).toEqual(['load'])
  })

  test('[CL1210] nothing is loaded while a turn is shown, and then once', () => {
    const { types } = run(
      [
        [{ type: 'turn-shown', messageId: 'm2', isSpokenReply: false }],
        [stored('2.f')],
        [changed('denied')],
        [{ type: 'shown-turn-ended', messageId: 'm2' }],
      ],
      AT_1,
    )
    expect(types).toEqual(['notify', 'load'])
  })
})

const failed = (code: 'unavailable' | 'unauthenticated') => ({
  type: 'catch-up-failed' as const,
  error: new AdkError(code, 'no'),
})

test('[CL21] what was missed during a request that got no stream is loaded', () => {
  expect(run([[TURN, BUSY], [IDLE]]).types).toContain('load')
})

test('[CL916] messages that could not be loaded are loaded again later', () => {
  const catchUp = { state: 'loading', shown: [], isDue: false } as const
  const loading = { ...FOLLOWING, catchUp }
  const { types, state } = run([[failed('unavailable')], [{ type: 'retry-due' }]], loading)
  expect(types).toEqual(['schedule-retry', 'cancel-retry', 'load'])
  expect(state).toMatchObject({ catchUp: { state: 'loading', isDue: false } })
  expect(run([[failed('unauthenticated')]], loading).types).toEqual(['report-error'])
})

const DETACHED = { state: 'detached' } as const

const after = (event: SyncEvent): readonly SyncEffect[] =>
  nextSync(DETACHED, event, view({ messages: ASKED }))[1]

describe('detached chats', () => {
  test('[CL25] what was not delivered is left to the next chat of this id', () => {
    const start = { outbox: new Map([['c9', { state: 'unsent', output: OUTPUT } as const]]) }
    const chat = { messages: DECIDED, responses: { a1: 'queued' } } as const
    const [state, effects] = step(start, { type: 'detached' }, chat)
    expect(state).toEqual(DETACHED)
    expect(effects).toEqual([
      { type: 'cancel-retry' },
      { type: 'forget', id: 'c9' },
      { type: 'forget', id: 'a1' },
    ])
  })

  test('[CL25] responses in transit are recorded as accepted or removed, and nothing else happens', () => {
    expect(after({ type: 'output-acknowledged', id: 'c1' })).toEqual([
      { type: 'mark', ids: ['c1'], response: 'accepted' },
    ])
    const error = new TypeError('lost')
    expect(after({ type: 'output-failed', output: OUTPUT, error })).toEqual([
      { type: 'forget', id: 'c1' },
    ])
    for (const event of [TURN, OPEN, IDLE, { type: 'decision-given', decision: DECISION } as const])
      expect(after(event)).toEqual([])
  })
})

describe('what the page shows and the server does not have', () => {
  const refusedOutput = {
    type: 'output-failed',
    output: OUTPUT,
    error: new AdkError('nothing-new', 'no'),
  } as const
  const refusedRequest = { ...refused('nothing-new'), ids: ['c1'], isUnreported: false }

  test.each([refusedOutput, refusedRequest])(
    '[CL1220] after a refused output, everything is loaded: $type',
    (event) => {
      const [, effects] = step({ ...FOLLOWING, ...baseOf('2.b', 'u1', 'm1') }, event, {
        messages: LOCATED,
        responses: { c1: 'sent' },
      })
      expect(effects).toContainEqual({ type: 'load', after: undefined })
    },
  )

  test('[CL1220] an output of a call that has ended is neither shown nor sent', () => {
    const expired = { type: 'tool-locate', toolCallId: 'c1', state: 'output-error' }
    const [, effects] = step(
      {},
      { type: 'output-given', output: OUTPUT },
      {
        messages: [USER, assistant('m1', expired)],
      },
    )
    expect(effects).toEqual([])
  })

  test.each([
    { base: '1.a', before: '1.a', after: '2.b', loadsAfter: '1.a' },
    // The page was behind, or ahead of the turn, or the turn has stored nothing.
    { base: '1.a', before: '2.b', after: '3.c', loadsAfter: undefined },
    { base: '3.c', before: '2.b', after: '3.c', loadsAfter: undefined },
    { base: '2.b', before: '2.b', after: '2.b', loadsAfter: undefined },
  ])(
    '[CL1210] after the rest of a message, its message is loaded: $base, $before, $after',
    ({ base, loadsAfter, ...positions }) => {
      const start = { ...FOLLOWING, ...baseOf(base, 'u1', 'm1') }
      const chunk = { type: 'start', messageId: 'm1' } as const
      const read = { turn: 't1', positions }
      const [begun] = nextSync(
        { ...START, ...start },
        { type: 'chunk', chunk, source: 'requested' },
        view({ messages: LOCATED }),
      )
      const [ended] = nextSync(begun, { type: 'stream-ended', read }, view({ messages: LOCATED }))
      const [, effects] = nextSync(ended, IDLE, view({ messages: LOCATED }))
      expect(effects).toContainEqual({ type: 'load', after: loadsAfter })
    },
  )
})
