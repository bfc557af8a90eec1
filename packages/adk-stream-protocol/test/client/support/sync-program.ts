import * as fc from 'fast-check'

import { DELAYED, type Delayed } from './tab-network.ts'

const SENT_KINDS = ['talk', 'pay', 'pays', 'locate', 'select', 'ask'] as const
/** `pays`: two payments in two chunks. `locate` and `select` run in the page, and `select` needs approval. `ask`: a question. */
export type SentKind = (typeof SENT_KINDS)[number]

/** What follows a command: the next one at once, after some turns of the event loop, or when nothing is sent and received any more. */
type Pace = 'now' | 'soon' | 'rest'

/** Something that the network does to a tab. */
export type NetworkCommand =
  | { readonly act: 'cut' | 'lose-answer' | 'repeat-event'; readonly tab: number }
  | { readonly act: 'cut-after'; readonly tab: number; readonly frames: number }
  | { readonly act: 'delay'; readonly tab: number; readonly what: Delayed }
  | { readonly act: 'deliver' | 'offline' | 'online'; readonly tab: number }

/** Something that the person does in a tab. `decide`: decides the oldest approval that the tab shows. */
export type TabCommand =
  | { readonly act: 'send'; readonly tab: number; readonly kind: SentKind }
  | {
      readonly act: 'decide'
      readonly tab: number
      readonly approved: boolean
      readonly by: 'chat' | 'api'
    }
  | { readonly act: 'stop' | 'regenerate' | 'recover' | 'reload'; readonly tab: number }

/** Something that happens elsewhere. */
type OtherCommand =
  /** Decides the oldest pending approval, in no tab. */
  | { readonly act: 'inbox'; readonly approved: boolean }
  /** The model, or a browser tool, continues to its next pause. */
  | { readonly act: 'continue' }
  /** The next connections of a tab go to another server. */
  | { readonly act: 'move'; readonly tab: number; readonly server: number }
  /** Closes a server when its turns have ended, and opens another one in its place. */
  | { readonly act: 'replace'; readonly server: number }
  /** The next writes of a server fail, as if its database was away. */
  | { readonly act: 'fail-writes'; readonly server: number; readonly count: number }
  /** The next connections to the model fail. */
  | { readonly act: 'lose-model'; readonly count: number }

/** A command that is impossible at its time does nothing. */
export type Command = { readonly pace: Pace } & (NetworkCommand | TabCommand | OtherCommand)

export interface TabPlan {
  readonly version: 6 | 7
  /** `held`: a socket whose stream stays open while it waits for a person. */
  readonly transport: 'sse' | 'socket' | 'held'
  readonly server: number
}

export interface Program {
  /** Whether sockets have live sessions. */
  readonly live: boolean
  readonly tabs: readonly TabPlan[]
  readonly commands: readonly Command[]
  /** How the person decides what is open at the end. */
  readonly approves: boolean
}

const SERVERS = 2
const TABS = 3

const tab = fc.constantFrom(0, 0, 0, 1, 1, 2)
const server = fc.nat({ max: SERVERS - 1 })
const pace = fc.constantFrom<Pace>('rest', 'soon', 'now')

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('send' as const),
      tab,
      kind: fc.constantFrom<SentKind>(...SENT_KINDS, 'pay', 'locate'),
      pace,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('decide' as const),
      tab,
      approved: fc.constantFrom(true, true, false),
      by: fc.constantFrom('chat' as const, 'api' as const),
      pace,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant('inbox' as const), approved: fc.boolean(), pace }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom('stop' as const, 'regenerate' as const, 'recover' as const),
      tab,
      pace,
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('reload' as const), tab, pace }) },
  { weight: 6, arbitrary: fc.record({ act: fc.constant('continue' as const), pace }) },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constantFrom('cut' as const, 'lose-answer' as const, 'repeat-event' as const),
      tab,
      pace,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('cut-after' as const),
      tab,
      frames: fc.integer({ min: 1, max: 12 }),
      pace,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant('delay' as const),
      tab,
      what: fc.constantFrom<Delayed>(...DELAYED),
      pace,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constantFrom(
        'deliver' as const,
        'deliver' as const,
        'offline' as const,
        'online' as const,
      ),
      tab,
      pace,
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('move' as const), tab, server, pace }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('replace' as const), server, pace }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('fail-writes' as const),
      server,
      count: fc.integer({ min: 1, max: 4 }),
      pace: fc.constant('now' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant('lose-model' as const),
      count: fc.integer({ min: 1, max: 3 }),
      pace: fc.constant('now' as const),
    }),
  },
)

const tabPlan: fc.Arbitrary<TabPlan> = fc.record({
  version: fc.constantFrom<6 | 7>(6, 7),
  transport: fc.constantFrom('sse' as const, 'socket' as const, 'held' as const),
  server,
})

/** Random programs. They begin with a message. */
export function programs(live: fc.Arbitrary<boolean>): fc.Arbitrary<Program> {
  return fc
    .record({
      live,
      tabs: fc.array(tabPlan, { minLength: 1, maxLength: TABS }),
      first: fc.constantFrom<SentKind>(...SENT_KINDS, 'pay', 'locate'),
      commands: fc.array(command, { minLength: 2, maxLength: 16, size: 'max' }),
      approves: fc.boolean(),
    })
    .map(({ first, commands, ...rest }) => {
      const begin: Command = { act: 'send', tab: 0, kind: first, pace: 'rest' }
      const program = { ...rest, commands: [begin, ...commands] }
      return Object.assign(program, { [fc.toStringMethod]: () => formatProgram(program) })
    })
}

/** Returns a program in a few lines. */
function formatProgram({ live, tabs, commands, approves }: Program): string {
  const plans = tabs.map((each) => `ai ${each.version} ${each.transport} @${each.server}`)
  const lines = commands.map(({ act, pace: next, ...more }) =>
    [act, ...Object.entries(more).map(([name, value]) => `${name}=${String(value)}`), next].join(
      ' ',
    ),
  )
  return [
    `${live ? 'live, ' : ''}${plans.join('; ')}; then ${approves ? 'approves' : 'denies'}`,
    ...lines,
  ].join('\n  ')
}
