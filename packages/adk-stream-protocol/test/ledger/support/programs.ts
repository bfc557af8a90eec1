import * as fc from 'fast-check'
import { MemoryApprovalStore } from './memory-approval-store.ts'
import { NOON } from './fixture.ts'
import { checkHistory, type Tally } from './check-history.ts'
import type { Action, CallPlan, Person, Program, rules } from './plan.ts'
import { type Backing, type MakeLedger, LedgerSimulation } from './simulation.ts'

const CALLS = 4

// Most actions concern the same call.
const call = fc.constantFrom(0, 0, 0, 0, 1, 1, 2, 3)

const plan: fc.Arbitrary<CallPlan> = fc.record({
  rule: fc.constantFrom<keyof typeof rules>(
    'owner',
    'owner',
    'two managers',
    'manager, then executive',
  ),
  chat: fc.nat({ max: 1 }),
  idempotent: fc.boolean(),
})

const who = fc.constantFrom<Person | number>(
  0,
  0,
  1,
  1,
  2,
  2,
  3,
  3,
  'hanako',
  'manager',
  'executive',
  'stranger',
)

const decide: fc.Arbitrary<Action> = fc.record({
  act: fc.constant('decide'),
  call,
  who,
  approved: fc.constantFrom(true, true, true, false),
  edited: fc.constantFrom(false, false, true),
  claims: fc.constantFrom(false, false, false, true),
})

const withdraw: fc.Arbitrary<Action> = fc.record({ act: fc.constant('withdraw'), call, who })

const run: fc.Arbitrary<Action> = fc
  .tuple(call, call, fc.boolean(), fc.constantFrom(true, true, true, false))
  .map(([own, other, fails, isOwn]) => ({ act: 'run', call: own, as: isOwn ? own : other, fails }))

const chaos: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ act: fc.constant('wait'), ms: fc.constantFrom(1, 30, 41, 99, 101) }),
  fc.record({ act: fc.constant('jump'), ms: fc.constantFrom(-200, -41, 41, 200) }),
  fc.record({ act: fc.constant('crash'), instance: fc.nat({ max: 2 }) }),
  fc.record({ act: fc.constant('rewrite'), call }),
)

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ act: fc.constant('request'), call }) },
  { weight: 8, arbitrary: decide },
  { weight: 2, arbitrary: withdraw },
  { weight: 8, arbitrary: run },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('cancel'), call }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('expire', 'recover', 'beat') }) },
  { weight: 1, arbitrary: chaos },
)

/** Calls are requested first. Then two or three instances and the environment act at random. */
const lives: fc.Arbitrary<Program> = fc.record({
  plans: fc.array(plan, { minLength: CALLS, maxLength: CALLS }),
  opening: fc
    .integer({ min: 1, max: CALLS })
    .map((asked) =>
      Array.from({ length: asked }, (_, index): Action => ({ act: 'request', call: index })),
    ),
  lanes: fc.array(fc.array(action, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 3 }),
  chaos: fc
    .array(fc.tuple(fc.nat({ max: 12 }), chaos), { maxLength: 2 })
    .map((list) =>
      list.flatMap(([turns, happening]): Action[] => [{ act: 'pause', turns }, happening]),
    ),
})

/** The same with questions of all kinds: approvals, questions for an answer, and sign-ins. One person decides each question. */
const questions: fc.Arbitrary<Program> = fc
  .tuple(
    lives,
    fc.array(fc.constantFrom(undefined, 'input', 'input', 'sign-in'), {
      minLength: CALLS,
      maxLength: CALLS,
    }),
  )
  .map(([program, kinds]) => ({
    ...program,
    plans: program.plans.map((own, index) => {
      const kind = kinds[index]
      if (kind === undefined) return own
      const one = { ...own, rule: 'owner' as const, kind }
      return kind === 'input' ? { ...one, idempotent: true } : one
    }),
  }))

const lease: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ act: fc.constant('wait'), ms: fc.constantFrom(1, 41) }),
  fc.record({ act: fc.constant('jump'), ms: fc.constantFrom(-200, 200) }),
  fc.record({ act: fc.constantFrom('recover', 'recover', 'beat') }),
  fc.record({ act: fc.constant('pause'), turns: fc.nat({ max: 4 }) }),
)

/** An approved call runs while its own instance and another one recover leases and clocks move. */
const leases: fc.Arbitrary<Program> = fc
  .record({
    idempotent: fc.boolean(),
    others: fc.array(lease, { minLength: 1, maxLength: 4 }),
    own: fc.array(lease, { minLength: 1, maxLength: 4 }),
  })
  .map(({ idempotent, others, own }) => ({
    plans: [{ rule: 'owner', chat: 0, idempotent }],
    opening: [
      { act: 'request', call: 0 },
      { act: 'decide', call: 0, who: 0, approved: true, edited: false },
    ],
    lanes: [[{ act: 'run', call: 0, as: 0, fails: false }], others],
    chaos: own,
  }))

/** An answer is given to the agent while its instance crashes, and another one recovers and does the same. */
const reports: fc.Arbitrary<Program> = fc
  .record({ turns: fc.nat({ max: 12 }), others: fc.array(lease, { maxLength: 3 }) })
  .map(({ turns, others }) => {
    const report = { act: 'run', call: 0, as: 0, fails: false } as const
    return {
      plans: [{ rule: 'owner', chat: 0, idempotent: true, kind: 'input' }],
      opening: [
        { act: 'request', call: 0 },
        { act: 'decide', call: 0, who: 0, approved: true, edited: false },
      ],
      lanes: [[report], [...others, report, { act: 'recover' }, report]],
      chaos: [
        { act: 'pause', turns },
        { act: 'crash', instance: 0 },
        { act: 'wait', ms: 41 },
      ],
    }
  })

const allKinds = fc.oneof({ weight: 5, arbitrary: questions }, { weight: 1, arbitrary: reports })

const programs = fc.oneof({ weight: 9, arbitrary: lives }, { weight: 1, arbitrary: leases })

/** Runs programs in an order that the scheduler chooses, and fails if they violate an invariant. */
export function property(
  open: () => Backing,
  makeLedger: MakeLedger,
  {
    tally = emptyTally(),
    counting = /./,
    kinds = 'approvals',
  }: {
    readonly tally?: Tally
    readonly counting?: RegExp
    /** Default: approvals only. */
    readonly kinds?: 'approvals' | 'all'
  } = {},
): fc.IAsyncPropertyWithHooks<[Program, fc.Scheduler]> {
  return fc.asyncProperty(
    kinds === 'all' ? allKinds : programs,
    fc.scheduler(),
    async (program, scheduler) => {
      const simulation = new LedgerSimulation(program.plans, open(), { scheduler, makeLedger })
      await simulation.run(program)
      const broken = await checkHistory(simulation, tally)
      if (broken.some((rule) => counting.test(rule))) throw new Error(broken.join('; '))
    },
  )
}

export function emptyTally(): Tally {
  return { answered: 0, starts: 0, accepted: 0, refused: 0, withdrawn: 0, ends: new Map() }
}

/** One store in memory for all instances, with its own clock. */
export function openMemory(): Backing {
  let [now, leaseNow] = [NOON, NOON]
  const store = new MemoryApprovalStore(
    () => now,
    () => leaseNow,
  )
  return {
    stores: [store, store, store],
    appName: 'demo',
    start: NOON,
    setClocks: (at, leaseAt) => {
      now = at
      leaseNow = leaseAt
    },
  }
}
