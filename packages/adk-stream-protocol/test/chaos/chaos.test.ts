import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'

import { expect, test } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import type { AuditEvent, AuditRecord } from '../../src/approvals/audit-entry.ts'
import type { ChatMessage, ChatPart } from '../support/chat-probe.ts'
import { checkChaos } from './support/check-chaos.ts'
import { writeScript } from './support/chaos-client.ts'
import {
  BROWSER_KINDS,
  type ChaosHistory,
  emptyHistory,
  PAYMENT_KINDS,
  type RecordedRun,
} from './support/history.ts'
import { Random } from './support/random.ts'
import { runChaos } from './support/run-chaos.ts'

const TIMEOUT_MS = 300_000

/** Short rounds, in which every fault has its turn. */
const TWO_ROUNDS = {
  seed: 1,
  ms: Infinity,
  rounds: 2,
  roundMs: 3_500,
  leaseMs: 2_000,
  clients: 4,
  everyMs: [500, 800] as const,
  folder: tmpdir(),
  print: () => undefined,
}

// Its servers and their replacements are a dozen processes. `postgres/instances.test.ts` proves the same rules for one fault at a time.
test.skipIf(!isLong)(
  '[RL331] [RL332] three servers lose nothing and do nothing twice, while they are replaced, killed and paused and PostgreSQL crashes',
  async () => {
    const { violations, tally } = await runChaos({
      ...TWO_ROUNDS,
      servers: 3,
      faults: [
        ['terminate', 'cut', 'terminate'],
        ['kill', 'restart-immediate', 'pause', 'lose-answers', 'restart-fast'],
      ],
    })
    expect(violations).toEqual([])
    // A busy machine may do little in this time.
    expect(tally.turns).toBeGreaterThan(1)
    expect(Object.keys(tally.faults)).toContain('terminate')
    expect(Object.keys(tally.faults)).toContain('kill')
  },
  TIMEOUT_MS,
)

test.skipIf(!isLong)(
  '[AP42] [LG1020] a server on a SQLite file loses nothing and does nothing twice, while it is replaced, killed and paused and its file is locked',
  async () => {
    const { violations, tally } = await runChaos({
      ...TWO_ROUNDS,
      store: 'sqlite',
      servers: 1,
      pages: 1,
      faults: [
        ['terminate', 'lock'],
        ['kill', 'lock', 'pause'],
      ],
    })
    expect(violations).toEqual([])
    expect(tally.turns).toBeGreaterThan(1)
    expect(Object.keys(tally.faults)).toEqual(expect.arrayContaining(['lock']))
  },
  TIMEOUT_MS,
)

test.skipIf(!isLong).each([false, true])(
  '[CL903] the tabs of people who lose their networks show what is stored; live: %s',
  async (live) => {
    const { violations, tally } = await runChaos({
      seed: 2,
      ms: 5_000,
      roundMs: 5_000,
      leaseMs: 4_000,
      servers: 2,
      clients: 0,
      pages: 4,
      live,
      everyMs: [500, 800],
      faults: [[]],
      folder: tmpdir(),
      print: () => undefined,
    })
    expect(violations).toEqual([])
    expect(tally.turns).toBeGreaterThan(1)
  },
  TIMEOUT_MS,
)

test.skipIf(!isLong).each([
  ['exit', /ended by itself: 1/],
  ['claim-twice', /ran 2 times, started 1|decisions were accepted|not recorded/],
] as const)(
  '[RL331] a run ends, and finds a fault that is planted in the servers: %s',
  async (plant, finds) => {
    const { violations, file = '' } = await runChaos({
      seed: 3,
      ms: 120_000,
      roundMs: 15_000,
      leaseMs: 4_000,
      servers: 3,
      clients: 6,
      everyMs: [500, 800],
      faults: [[]],
      plant,
      folder: tmpdir(),
      print: () => undefined,
    })
    expect(violations.join('\n')).toMatch(finds)
    // What the servers did is beside the history.
    expect(await readFile(file.replace(/json$/, 'log'), 'utf8')).toMatch(/ server-1 \d+ server: /)
  },
  TIMEOUT_MS,
)

test.each(['talk', 'stop', 'ask', ...PAYMENT_KINDS, ...BROWSER_KINDS] as const)(
  '[RL331] two messages of a run have different texts: %s',
  (kind) => {
    const [first, second] = [1, 2].map((id) => writeScript(kind, new Random(1), { id, amount: id }))
    expect(first?.script).not.toBe(second?.script)
  },
)

const chat = { appName: 'app', principalId: 'hanako', chatId: 'chat' }

function record(version: number, event: AuditEvent): AuditRecord {
  return { seq: version + 1, approvalId: 'a', chat, version, at: 1_000 * version, event }
}

const REQUESTED = record(0, {
  type: 'requested',
  messageId: 'reply',
  toolCallId: 'call',
  toolName: 'pay',
  args: {},
  digest: '',
  terms: { chain: [], idempotent: false },
  deadline: 1e9,
})
const APPROVED = record(1, { type: 'approved', by: 'hanako', step: 0 })
const DENIED = record(1, { type: 'denied', by: 'hanako', step: 0 })
const STARTED = record(2, { type: 'started', worker: 'one', args: { amount: 1 } })
const SUCCEEDED = record(3, { type: 'succeeded', output: {} })
const LOST = record(3, { type: 'lost', worker: 'one', becomes: 'unknown' })
const GIVEN_UP = record(3, { type: 'lost', worker: 'one', becomes: 'approved', isUnstarted: true })
const PAID = { chatId: 'chat', userId: 'hanako', name: 'pay', to: '', amount: 1, key: 'call' }

function messagesWith(text: string, part: Partial<ChatPart> = {}): ChatMessage[] {
  const call = { type: 'tool-pay', toolCallId: 'call', state: 'output-available', ...part }
  return [
    { id: 'message', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] },
    { id: 'reply', role: 'assistant', parts: [call, { type: 'text', text }] },
  ]
}

/** A history without violations. */
function wellHistory(): ChaosHistory {
  return {
    ...emptyHistory(1_000),
    turns: [
      {
        chatId: 'chat',
        userMessageId: 'message',
        kind: 'pay',
        expected: 'One.Two.',
        from: 0,
        to: 5_000,
        seen: 'One.',
        stops: false,
      },
    ],
    decisions: [
      { approvalId: 'a', approved: true, result: 'accepted' },
      { approvalId: 'a', approved: false, result: 'refused' },
    ],
    effects: [PAID],
    audit: [REQUESTED, APPROVED, STARTED, SUCCEEDED],
    chats: new Map([['chat', [messagesWith('One.Two.'), messagesWith('One.Two.')]]]),
  }
}

function stored(messages: ChatMessage[], other = messages): Pick<ChaosHistory, 'chats'> {
  return { chats: new Map([['chat', [messages, other]]]) }
}

/** A history with one call of a browser tool and these runs of it. */
function browserHistory(
  runs: readonly Partial<RecordedRun>[],
  isWaiting = false,
): Partial<ChaosHistory> {
  const turn = { chatId: 'chat', userMessageId: 'chat.1', kind: 'locate', expected: '' } as const
  const part = { type: 'tool-locate', state: 'output-available', output: { run: 'run-1' } }
  const [message, reply] = isWaiting
    ? messagesWith('', { type: 'tool-locate', state: 'input-available' })
    : messagesWith('locate -> {"run":"run-1"}', part)
  const messages = message && reply ? [{ ...message, id: 'chat.1' }, reply] : []
  return {
    turns: [{ ...turn, from: 0, to: 5_000, seen: '', stops: false }],
    runs: runs.map((run) => ({ chatId: 'chat', id: 1, name: 'run-1', from: 1, ...run })),
    effects: [],
    audit: [],
    decisions: [],
    ...stored(messages),
  }
}

/** A history in which the client has seen a text in a message. */
function seenText(seen: string, seenIn: string): Partial<ChaosHistory> {
  return { turns: wellHistory().turns.map((turn) => ({ ...turn, seen, seenIn })) }
}

/** A history in which the emulated model repeats a text without directives. */
function repeats(text: string, times = 1, begun = ''): Partial<ChaosHistory> {
  const hint = 'To script the reply, send [[say Hello.]] or load a scenario.'
  const reply = begun + `The emulator received: ${text}\n${hint}`.repeat(times)
  return { ...seenText('', 'reply'), ...stored(messagesWith(reply)) }
}

/** Gives audit records their versions. */
function renumber(...records: readonly AuditRecord[]): AuditRecord[] {
  return records.map((each, version) => ({ ...each, version }))
}

/** A history in which the reply after a denied call is stored without the call. */
const DENIED_AND_MISSING: Partial<ChaosHistory> = {
  audit: [REQUESTED, DENIED],
  decisions: [{ approvalId: 'a', approved: false, result: 'accepted' }],
  effects: [],
  ...stored(messagesWith('One.Two.', { toolCallId: 'other' })),
}

const KILL = { kind: 'kill', from: 2_000, to: 2_100 } as const
const AWAY = { kind: 'away', from: 2_000, to: 3_500 } as const

const CASES: readonly [what: string, change: Partial<ChaosHistory>, finds: RegExp | undefined][] = [
  ['nothing in a history without faults', {}, undefined],
  ['a call that ran twice', { effects: [PAID, PAID] }, /ran 2 times, started 1/],
  ['a call that ran with other arguments', { effects: [{ ...PAID, amount: 2 }] }, /paid 2 instead/],
  ['a call that did not run', { effects: [] }, /did not run/],
  ['an effect without an approval', { audit: [] }, /ran without being started/],
  ['a lost decision', { audit: [REQUESTED], effects: [] }, /not recorded/],
  [
    'an approved call that was forgotten',
    { audit: [REQUESTED, APPROVED], effects: [] },
    /stays approved/,
  ],
  [
    'two accepted decisions',
    {
      decisions: [true, true].map((approved) => ({
        approvalId: 'a',
        approved,
        result: 'accepted',
      })),
    },
    /2 decisions were accepted/,
  ],
  [
    'a call that was lost without a crash',
    { audit: [REQUESTED, APPROVED, STARTED, LOST] },
    /no server/,
  ],
  [
    'a call that was lost because the database was away',
    { audit: [REQUESTED, APPROVED, STARTED, LOST], faults: [AWAY] },
    /no server/,
  ],
  [
    'nothing in a reply that a database interrupted that was away',
    { ...stored(messagesWith('One.')), faults: [AWAY] },
    undefined,
  ],
  [
    'a lost call that is shown as succeeded',
    { audit: [REQUESTED, APPROVED, STARTED, LOST], faults: [KILL] },
    /unknown is shown as output-available/,
  ],
  ['doubled text', stored(messagesWith('One.One.Two.')), /another text is stored/],
  ['a text that is not stored', seenText('Three.', 'reply'), /the client saw another text/],
  ['nothing in an earlier message that was read', seenText('Three.', 'earlier'), undefined],
  [
    'nothing in a claim that a server gave up',
    { audit: renumber(REQUESTED, APPROVED, STARTED, GIVEN_UP, STARTED, SUCCEEDED) },
    undefined,
  ],
  ['a missing end', stored(messagesWith('One.')), /nothing interrupted it/],
  [
    'nothing in a reply that repeats the outcome of a parked call',
    repeats('[Result of the call call, pay({}), which'),
    undefined,
  ],
  [
    'nothing in a reply that repeats an outcome, which the restored session received as a text',
    repeats('[pay returned {"paid":1}]'),
    undefined,
  ],
  [
    'a reply that repeats the outcome of another call',
    repeats('[Result of the call other, pay({}), which'),
    /another text is stored/,
  ],
  [
    'a reply that repeats the outcome of another tool',
    repeats('[top_up returned {"paid":1}]'),
    /another text is stored/,
  ],
  ['an outcome that is repeated twice', repeats('[pay returned {}]', 2), /another text is stored/],
  [
    'nothing in a reply that a crash cut off, and that repeats the outcome when it begins again',
    { ...repeats('[pay returned {"paid":1}]', 1, 'One.'), faults: [KILL] },
    undefined,
  ],
  [
    'a reply that begins again without a crash',
    repeats('[pay returned {"paid":1}]', 1, 'One.'),
    /nothing interrupted it/,
  ],
  [
    'a whole reply that begins again after a crash',
    { ...repeats('[pay returned {"paid":1}]', 1, 'One.Two.'), faults: [KILL] },
    /another text is stored/,
  ],
  [
    'a missing end of an outcome',
    { ...seenText('', 'reply'), ...stored(messagesWith('The emulator received: [pay returned {')) },
    /nothing interrupted it/,
  ],
  ['servers that differ', stored(messagesWith('One.Two.'), messagesWith('One.')), /different/],
  [
    'nothing, if the person left before their page ran the tool',
    browserHistory([], true),
    undefined,
  ],
  ['a tool that ran and has no result', browserHistory([{}], true), /not whole/],
  [
    'a browser tool that ran in two open tabs',
    browserHistory([{}, { name: 'run-2' }]),
    /run-2 ran while the tab of run-1 was open/,
  ],
  [
    'a browser tool that ran although its result was known',
    browserHistory([{ closedAt: 1, isAcknowledged: true }, { name: 'run-2' }]),
    /after the server had the result of run-1/,
  ],
  [
    'nothing in a browser tool that ran again for the call of a reply that was generated again',
    browserHistory([{ toolCallId: 'earlier', name: 'run-0' }, { toolCallId: 'call' }]),
    undefined,
  ],
  ['a result that the page did not give', browserHistory([]), /the result is of no run: run-1/],
  ['nothing in a browser tool that ran once', browserHistory([{}]), undefined],
  ['a denied call that is missing', DENIED_AND_MISSING, /denied is shown as undefined/],
  [
    'nothing, if the person tried again and the reply with the denied call was replaced',
    {
      ...DENIED_AND_MISSING,
      turns: wellHistory().turns.map((turn) => ({ ...turn, isRetried: true })),
    },
    undefined,
  ],
  ['a server that crashed', { problems: ['server-1 ended by itself: 1'] }, /by itself/],
]

test.each(CASES)('[RL331] the checker finds %s', (_what, change, finds) => {
  const violations = checkChaos({ ...wellHistory(), ...change })
  expect(violations.join('\n')).toMatch(finds ?? /^$/)
})
