import { describe, expect, test } from 'vitest'

import type { Approval } from '../../src/approvals/approval.ts'
import type { CallEvent, CallState } from '../../src/calls/next-call.ts'
import { nextCall } from '../../src/calls/next-call.ts'
import { after, approve, askedFor, claimOf, deny, hanako } from '../ledger/support/fixture.ts'

const requested = askedFor()
const { id: approvalId } = requested
const approved = after(requested, approve(hanako))
const executing = after(approved, claimOf(requested))
const succeeded = after(executing, { type: 'succeed', worker: 'worker-1', output: { paid: 1 } })
const handed = after(executing, { type: 'succeed', worker: 'worker-1', output: null })
const denied = after(requested, deny(hanako))
const cancelled = after(requested, { type: 'cancel', reason: 'gone' })
const unknown = after(executing, { type: 'lose', worker: 'worker-1' })
const terms = { chain: [], idempotent: false, deadlineMs: 1 }
const output = { toolCallId: requested.toolCallId, result: { output: 'Tokyo' } }

const ask: CallEvent = { type: 'checked', check: { verdict: 'ask', terms }, canWait: true }
const run: CallEvent = { type: 'checked', check: { verdict: 'run' }, canWait: true }
const stored: CallEvent = { type: 'request-stored', approval: requested }
const shown: CallEvent = { type: 'request-shown', approvalId }
const changed = (approval: Approval): CallEvent => ({ type: 'approval-changed', approval })
const resumed = (approval: Approval, handsOver = false): CallEvent => ({
  type: 'resumed',
  approval,
  handsOver,
})
const claimed: CallEvent = { type: 'claimed', approval: executing }
const claimRefused = (approval: Approval | undefined) =>
  ({ type: 'claim-refused', approval }) as const
const deciding: CallEvent = { type: 'decision-received', approvalId }
const decided = (approval: Approval, claim?: Approval): CallEvent => ({
  type: 'decided',
  result: { decided: approval, claimed: claim },
})
const ran = (change: Partial<Extract<CallEvent, { type: 'ran' }>> = {}): CallEvent => ({
  type: 'ran',
  response: { paid: 1 },
  isRecorded: true,
  isOpen: false,
  ...change,
})
const handedOver: CallEvent = { type: 'handed-over' }
const outputReceived: CallEvent = { type: 'output-received', output }
const modelCancelled: CallEvent = { type: 'cancelled' }

const asked = [ask, stored, shown]
const running = [...asked, changed(approved), claimed]
const delivered = [run, ran({ isOpen: true })]

/** Plays events on a new call. Returns its state and the effects of the last event. */
function play(events: readonly CallEvent[]): { state: CallState; effects: readonly object[] } {
  let state: CallState = { name: 'new' }
  let effects: readonly object[] = []
  for (const event of events) [state, effects] = nextCall(state, event)
  return { state, effects }
}

const paths: readonly [what: string, events: CallEvent[], state: string, effects: object[]][] = [
  ['a call without approval runs', [run], 'running', [{ type: 'run' }]],
  [
    'a refused call is settled',
    [{ type: 'checked', check: { verdict: 'refuse', response: { error: 'no' } }, canWait: true }],
    'settled',
    [{ type: 'settle', response: { error: 'no' } }],
  ],
  ['a call that needs approval is requested', [ask], 'requested', [{ type: 'request', terms }]],
  [
    'a call that cannot wait for approval is settled',
    [{ ...ask, canWait: false }],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a stored request is shown',
    [ask, stored],
    'requested',
    [{ type: 'show', approval: requested }],
  ],
  [
    'a refused request is settled',
    [ask, { type: 'request-refused', refusal: { refused: 'too-many-pending' } }],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a decision before the request is shown waits for it',
    [ask, stored, changed(approved)],
    'requested',
    [],
  ],
  [
    'a shown request is read again, because it may have been decided',
    asked,
    'asked',
    [{ type: 'read', approvalId }],
  ],
  ['a pending approval changes nothing', [...asked, changed(requested)], 'asked', []],
  [
    'an approval of another call changes nothing',
    [...asked, changed({ ...approved, id: 'other' })],
    'asked',
    [],
  ],
  [
    'an approved call is claimed',
    [...asked, changed(approved)],
    'approved',
    [{ type: 'claim', approvalId }],
  ],
  [
    'a second approval does not claim again',
    [...asked, changed(approved), changed(approved)],
    'approved',
    [],
  ],
  [
    'a denied call is settled',
    [...asked, changed(denied)],
    'settled',
    [{ type: 'settle', note: { state: 'denied' } }],
  ],
  [
    'a cancelled call is settled',
    [...asked, changed(cancelled)],
    'settled',
    [{ type: 'settle', note: { state: 'cancelled' } }],
  ],
  [
    'a call whose outcome is unknown is settled',
    [...asked, changed(unknown)],
    'settled',
    [{ type: 'settle', note: { state: 'unknown' } }],
  ],
  [
    'a call that runs elsewhere is left',
    [...asked, changed(executing)],
    'left',
    [{ type: 'leave' }],
  ],
  [
    'a call that ran elsewhere is left',
    [...asked, changed(succeeded)],
    'left',
    [{ type: 'leave' }],
  ],
  ['a claimed call runs', running, 'running', [{ type: 'run', approval: executing }]],
  ['a call that runs is not claimed again', [...running, changed(approved)], 'running', []],
  [
    'a claim that lost to a cancellation is settled',
    [...asked, changed(approved), claimRefused(cancelled)],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a claim that lost to another process is left',
    [...asked, changed(approved), claimRefused(executing)],
    'left',
    [{ type: 'leave' }],
  ],
  [
    'a claim of a deleted approval is left',
    [...asked, changed(approved), claimRefused(undefined)],
    'left',
    [{ type: 'leave' }],
  ],
  ['a decision of this process is awaited', [...asked, deciding], 'deciding', []],
  [
    'its own event does not claim a second time',
    [...asked, deciding, changed(approved)],
    'deciding',
    [],
  ],
  [
    'a decision that claims the call runs it',
    [...asked, deciding, decided(approved, executing)],
    'running',
    [{ type: 'run', approval: executing }],
  ],
  [
    'a decision without a claim claims the call',
    [...asked, deciding, decided(approved)],
    'approved',
    [{ type: 'claim', approvalId }],
  ],
  [
    'a denial of this process settles the call',
    [...asked, deciding, decided(denied)],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a vote before the last one leaves the call pending',
    [...asked, deciding, decided(requested)],
    'asked',
    [{ type: 'read', approvalId }],
  ],
  [
    'a rejected decision leaves the call pending',
    [...asked, deciding, { type: 'decided', result: { refused: 'not-allowed' } }],
    'asked',
    [{ type: 'read', approvalId }],
  ],
  [
    'a decision that could not be stored leaves the call pending',
    [...asked, deciding, { type: 'decided', result: undefined }],
    'asked',
    [{ type: 'read', approvalId }],
  ],
  [
    'a resumed call is claimed',
    [...asked, resumed(approved)],
    'approved',
    [{ type: 'claim', approvalId }],
  ],
  [
    'a resumed call that ran elsewhere is reported',
    [...asked, resumed(succeeded)],
    'settled',
    [{ type: 'settle', response: { paid: 1 } }],
  ],
  [
    'a resumed browser call whose handover is not stored is handed over [BT1580]',
    [...asked, resumed(handed, true)],
    'delivered',
    [{ type: 'hand-over' }],
  ],
  [
    'a resumed browser call that lost its claim is handed over [BT1580]',
    [...asked, resumed(approved, true), { ...claimRefused(handed), handsOver: true }],
    'delivered',
    [{ type: 'hand-over' }],
  ],
  [
    'a resumed call that still runs elsewhere is left',
    [...asked, resumed(executing)],
    'left',
    [{ type: 'leave' }],
  ],
  [
    'a resumed call that is pending again is left',
    [...asked, resumed(requested)],
    'left',
    [{ type: 'leave' }],
  ],
  [
    'a resumed call that lost its claim is reported',
    [...asked, resumed(approved), claimRefused(succeeded)],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a resumed call without an approval is settled',
    [...asked, resumed(approved), claimRefused(undefined)],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'the result of a call settles it',
    [run, ran()],
    'settled',
    [{ type: 'settle', response: { paid: 1 }, note: undefined }],
  ],
  [
    'the result of an approved call carries a note',
    [...running, ran()],
    'settled',
    [{ type: 'settle', note: { state: 'approved' } }],
  ],
  [
    'a call that another process settled ends the run',
    [...running, ran({ isRecorded: false })],
    'left',
    [{ type: 'lose' }],
  ],
  [
    'a tool that asks itself is requested',
    [run, ran({ question: terms })],
    'requested',
    [{ type: 'request', terms }],
  ],
  [
    'a tool that asks where ADK cannot wait is settled',
    [run, ran({ question: 'unavailable' })],
    'settled',
    [{ type: 'settle' }],
  ],
  [
    'a call without a result is handed over',
    delivered,
    'delivered',
    [{ type: 'hand-over', note: undefined }],
  ],
  [
    'an output settles a call that was handed over',
    [...delivered, handedOver, outputReceived],
    'settled',
    [{ type: 'settle-with-output', output }],
  ],
  [
    'a second output changes nothing',
    [...delivered, handedOver, outputReceived, outputReceived],
    'settled',
    [],
  ],
  [
    'an output before a call without approval has run is refused',
    [run, outputReceived, ran({ isOpen: true }), handedOver],
    'delivered',
    [],
  ],
  [
    'an output that arrives while the handover is being stored is kept: the client has the offer',
    [...delivered, outputReceived, handedOver],
    'settled',
    [{ type: 'settle-with-output', output }],
  ],
  [
    'an output with the approval is kept until the handover',
    [...asked, changed(approved), outputReceived, claimed, ran({ isOpen: true }), handedOver],
    'settled',
    [{ type: 'settle-with-output', output }],
  ],
  [
    'an output while the approved tool runs is kept until the handover',
    [...running, outputReceived, ran({ isOpen: true }), handedOver],
    'settled',
    [{ type: 'settle-with-output', output }],
  ],
  [
    'a call that could not be claimed because the store is away still waits',
    [...asked, changed(approved), { type: 'store-failed' }],
    'asked',
    [{ type: 'read', approvalId }],
  ],
  [
    'a call that runs while the store is away is settled as the ledger knows it',
    [...running, { type: 'store-failed' }],
    'settled',
    [{ type: 'recover' }],
  ],
  [
    'a cancelled request is withdrawn',
    [...asked, modelCancelled],
    'asked',
    [{ type: 'withdraw', approvalId }],
  ],
  [
    'a request that was cancelled before it was shown is withdrawn',
    [ask, stored, modelCancelled, shown],
    'asked',
    [
      { type: 'withdraw', approvalId },
      { type: 'read', approvalId },
    ],
  ],
  [
    'a decision wins over the cancellation',
    [...asked, modelCancelled, changed(approved), claimed],
    'running',
    [{ type: 'run', approval: executing }],
  ],
  [
    'a call that was cancelled before it ran does not run',
    [modelCancelled, run],
    'settled',
    [{ type: 'settle', response: { status: 'cancelled' } }],
  ],
  [
    'a call that was cancelled before its approval was requested is settled without one',
    [modelCancelled, ask],
    'settled',
    [{ type: 'settle', response: { status: 'cancelled' } }],
  ],
  [
    'a cancelled browser call is settled',
    [...delivered, handedOver, modelCancelled],
    'settled',
    [{ type: 'settle', response: { status: 'cancelled' } }],
  ],
  [
    'a browser call that was cancelled before its handover is settled',
    [...delivered, modelCancelled, handedOver],
    'settled',
    [{ type: 'settle', response: { status: 'cancelled' } }],
  ],
  [
    'a call that was cancelled while it ran is settled with its result',
    [run, modelCancelled, ran()],
    'settled',
    [{ type: 'settle', response: { paid: 1 } }],
  ],
  [
    'a call whose work failed is recovered',
    [...running, { type: 'failed' }],
    'settled',
    [{ type: 'recover' }],
  ],
]

describe('[AP3] the lifecycle of a call', () => {
  test.each(paths)('[AP3] %s', (_, events, state, effects) => {
    const end = play(events)
    expect(end.state.name).toBe(state)
    expect(end.effects).toHaveLength(effects.length)
    expect(end.effects).toMatchObject(effects)
  })

  test('[AP3] the model receives no result of a call that it cancelled', () => {
    expect(play([run, modelCancelled, ran()]).state).toEqual({ name: 'settled', isCancelled: true })
    expect(play([...running, modelCancelled, ran({ isOpen: true })]).state.isCancelled).toBe(true)
  })

  test('[AP3] an event that changes nothing returns the same state', () => {
    const { state } = play(asked)
    for (const event of [outputReceived, changed(requested)])
      expect(nextCall(state, event)[0]).toBe(state)
  })
})
