import { screen, waitFor } from '@testing-library/react'
import { describe, expect, test } from 'vitest'

import { planRecovery, planLocalRecovery } from '../../src/react/reading/problem.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'
import { answer, payment, approvalPart } from './support/messages.ts'

const FAIL_AFTER = `${callPayment(50)}[[then]][[fail 429 retry=0]]`

describe.each(WAYS)('over %s', (way) => {
  test.each(['with', 'without'])(
    '[RE20] a payment that ran before the reply failed is kept and not repeated, %s an api',
    async (how) => {
      await using testBridge = await TestBridge.open()
      await using browser = new TestBrowser(testBridge, way)
      const page = browser.show(how === 'with' ? { api: browser.api } : {})
      page.say(FAIL_AFTER)
      await page.click('Approve')
      await screen.findByText('The reply is unfinished')
      expect(page.chat.problem).toEqual({ kind: 'unfinished' })
      expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
      const asked = testBridge.asked
      await page.chat.recover()
      await page.untilReady()
      expect(testBridge.asked).toBe(asked)
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(page.text).toContain('Approved.')
      expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
      expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
      page.say('[[say All is paid.]]')
      await page.until('All is paid.')
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  test('[RE10] a failed reply without calls is regenerated, without an api', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say('[[fail 429 retry=0]]')
    await screen.findByText('The model is busy')
    const asked = testBridge.asked
    await page.click('Try again')
    await waitFor(() => expect(testBridge.asked).toBeGreaterThan(asked))
  })
})

const ASKED = {
  id: 'asked',
  role: 'user' as const,
  parts: [{ type: 'text' as const, text: 'Pay.' }],
}
const ERROR = { error: { code: 'internal' as const, message: 'x' } }
const PAID = payment({ state: 'output-available', output: {} })
const DENIED = { id: 'approval-1', approved: false as const }

test.each([
  { name: 'ran', parts: [PAID, approvalPart({ state: 'approved' })], step: 'show' },
  { name: 'may have run', parts: [PAID, approvalPart({ state: 'unknown' })], step: 'show' },
  { name: 'was begun', parts: [payment({ state: 'input-available' })], step: 'show' },
  {
    name: 'was decided unheard',
    parts: [payment(), approvalPart({ state: 'approved' })],
    step: 'show',
  },
  { name: 'expired', parts: [payment(), approvalPart({ state: 'expired' })], step: 'regenerate' },
  { name: 'waits', parts: [payment(), approvalPart()], step: 'regenerate' },
  {
    name: 'was denied',
    parts: [
      payment({ state: 'output-denied', approval: DENIED }),
      approvalPart({ state: 'denied' }),
    ],
    step: 'regenerate',
  },
])('[RE20] of a failed answer with a call that $name: $step', ({ parts, step }) => {
  const failed = { ...answer(...parts), metadata: ERROR }
  const messages = [ASKED, failed]
  expect(planRecovery(messages, { messages, running: false }).step).toBe(step)
  // The state of the server is unknown until it is loaded.
  expect(planLocalRecovery(messages, { isDisconnected: false })).toBe('keep')
  expect(planLocalRecovery(messages, { isDisconnected: true })).toBe('resume')
  expect(planLocalRecovery([ASKED], { isDisconnected: false })).toBe('regenerate')
})
