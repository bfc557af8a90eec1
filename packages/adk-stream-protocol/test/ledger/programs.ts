import * as fc from 'fast-check'
import type { Ledger } from '../../src/approvals/ledger.ts'
import { checkHistory, type Tally } from './check-history.ts'
import {
  type Action,
  type Backing,
  type CallPlan,
  type MakeLedger,
  people,
  type Person,
  rules,
  World,
} from './world.ts'

export interface Program {
  readonly plans: readonly CallPlan[]
  readonly lanes: readonly (readonly Action[])[]
  readonly chaos: readonly Action[]
}

const CALLS = 4

const call = fc.nat({ max: CALLS - 1 })

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

const who = fc.constantFrom<Person>('hanako', 'hanako', ...Object.keys(people).filter(isPerson))

const decide: fc.Arbitrary<Action> = fc.record({
  act: fc.constant('decide'),
  call,
  who,
  approved: fc.constantFrom(true, true, true, false),
  edited: fc.constantFrom(false, false, true),
})

const run: fc.Arbitrary<Action> = fc
  .tuple(call, call, fc.boolean(), fc.constantFrom(true, true, true, false))
  .map(([own, other, fails, isOwn]) => ({ act: 'run', call: own, as: isOwn ? own : other, fails }))

const wait: fc.Arbitrary<Action> = fc.record({
  act: fc.constant('wait'),
  ms: fc.constantFrom(1, 30, 41, 99, 101),
})

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ act: fc.constant('request'), call }) },
  { weight: 6, arbitrary: decide },
  { weight: 5, arbitrary: run },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('cancel'), call }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('expire', 'recover', 'beat') }) },
)

const chaos: fc.Arbitrary<Action> = fc.oneof(
  { weight: 2, arbitrary: wait },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('crash'), instance: fc.nat({ max: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('rewrite'), call }) },
)

/** Calls are asked first, by the first instance; then every instance does as it likes, and the world with them. */
export const programs: fc.Arbitrary<Program> = fc
  .record({
    plans: fc.array(plan, { minLength: CALLS, maxLength: CALLS }),
    asked: fc.integer({ min: 1, max: CALLS }),
    lanes: fc.array(fc.array(action, { minLength: 1, maxLength: 5 }), {
      minLength: 2,
      maxLength: 3,
    }),
    chaos: fc.array(chaos, { maxLength: 3 }),
  })
  .map(({ plans, asked, lanes, chaos: around }) => {
    const requests = Array.from({ length: asked }, (_, index): Action => ({
      act: 'request',
      call: index,
    }))
    const [first = [], ...others] = lanes
    return { plans, lanes: [[...requests, ...first], ...others], chaos: around }
  })

export const rightLedger: (
  make: new (...options: ConstructorParameters<typeof Ledger>) => Ledger,
) => MakeLedger = (Make) => (options) => new Make(options)

/** Runs a program in an order that the scheduler chooses, and checks what happened. */
export function property(
  open: () => Backing,
  makeLedger: MakeLedger,
  tally: Tally,
): fc.IAsyncPropertyWithHooks<[Program, fc.Scheduler]> {
  return fc.asyncProperty(programs, fc.scheduler(), async (program, scheduler) => {
    const world = new World(program.plans, open(), { scheduler, makeLedger })
    await world.run(program.lanes, program.chaos)
    await checkHistory(world, tally)
  })
}

export function emptyTally(): Tally {
  return { starts: 0, accepted: 0, refused: 0, ends: new Map() }
}

function isPerson(name: string): name is Person {
  return name in people
}
