import { callPayment } from '../../approvals/support/payments.ts'
import { TOKYO } from '../../support/locating.ts'

/** What a person and a page do after the request. */
export type Step =
  /** Decides the approvals, in the order of the calls. */
  | { readonly type: 'decide'; readonly approved: readonly boolean[] }
  /** Sends the result of the browser tool. */
  | { readonly type: 'give'; readonly output: unknown }
  /** Decides after the deadline. */
  | { readonly type: 'expire' }

export interface Scenario {
  readonly name: string
  readonly ask: string
  readonly steps: readonly Step[]
}

const PAY = `${callPayment(50)}[[then]][[say 花子さんの件は以上です。]]`
const PAY_BOTH = `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`
const LOCATE = '[[call get_location {}]][[then]][[say There you are.]]'

const decide = (...approved: boolean[]): Step => ({ type: 'decide', approved })

export const scenarios: readonly Scenario[] = [
  {
    name: 'get_weather',
    ask: '[[call get_weather {"place":"東京"}]][[then]][[say It is sunny.]]',
    steps: [],
  },
  { name: 'process_payment-approved', ask: PAY, steps: [decide(true)] },
  { name: 'process_payment-denied', ask: PAY, steps: [decide(false)] },
  { name: 'process_payment-timed-out', ask: PAY, steps: [{ type: 'expire' }] },
  {
    name: 'get_location-approved',
    ask: LOCATE,
    steps: [decide(true), { type: 'give', output: TOKYO }],
  },
  { name: 'get_location-denied', ask: LOCATE, steps: [decide(false)] },
  {
    name: 'change_bgm',
    ask: '[[call change_bgm {"track":2}]][[then]][[say Track 2 is on.]]',
    steps: [{ type: 'give', output: { success: true, track: 2 } }],
  },
  ...[true, false].flatMap((alice) =>
    [true, false].map((bob) => ({
      name: `two-payments-${alice ? 'approved' : 'denied'}-${bob ? 'approved' : 'denied'}`,
      ask: PAY_BOTH,
      steps: [decide(alice, bob)],
    })),
  ),
]
