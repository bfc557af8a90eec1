import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { PHONE, tap } from './support/touch.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

test('[RE363] on a touch screen, every button of the card and of its forms works', async () => {
  const text = 'Send $30 to Alice, $40 to Bob and $50 to Carol'
  const { card, account, waitUntilIdle } = await requestApproval(testDemo, text, PHONE)
  const button = (name: string, label: string | RegExp) =>
    card(name).getByRole('button', { name: label, exact: true })
  await decide(card('Alice'), 'approve', tap)
  await waitForOutcome(card('Alice'))
  await tap(button('Bob', 'Deny…'))
  await tap(button('Bob', 'Back'))
  await decide(card('Bob'), 'deny', tap)
  await waitForOutcome(card('Bob'), 'deny')
  await tap(button('Carol', 'Edit…'))
  await card('Carol').getByLabel('Amount').fill('45')
  await tap(button('Carol', /^Approve/))
  await waitForOutcome(card('Carol'))
  await waitUntilIdle()
  await tap(card('Carol').getByText('Details'))
  await card('Carol').getByText('Function').waitFor()
  expect(await account.payments()).toEqual(['Alice 30', 'Carol 45'])
})

longTest(
  '[RE363] on touch screens, two presses approve a large payment, in the card and by its link',
  async () => {
    const text = 'Send $600 to Alice'
    const { card, account } = await requestApproval(testDemo, text, PHONE)
    await decide(card('Alice'), 'approve', tap)
    await tap(card('Alice').getByRole('button', { name: 'Ask another person…' }))
    const url = await card('Alice').getByLabel('Link to this approval').inputValue()
    const phone = await testDemo.openPage({ ...PHONE, url })
    await tap(phone.getByRole('button', { name: 'Show the request' }))
    const item = phone.getByRole('listitem')
    await item.getByText('Send $600 to Alice').waitFor()
    await decide(item, 'approve', tap)
    await phone.getByText('Your decision was recorded.').waitFor()
    await waitForOutcome(card('Alice'))
    expect(await account.payments()).toEqual(['Alice 600'])
  },
)

longTest('[RE363] on a touch screen, the inbox and the form of a question work', async () => {
  const { page, card, send, replies } = await requestApproval(testDemo, 'Send $600 to Bob', PHONE)
  await tap(page.getByRole('button', { name: 'Approvals: 1 pending' }))
  await decide(page.getByRole('listitem', { name: 'Send $600.00 to Bob' }), 'approve', tap)
  await page.keyboard.press('Escape')
  await card('Bob').getByText('You approved this (1 of 2)').waitFor()
  await send('Reserve a table for me')
  const question = card('Which table would you like?')
  await question.getByLabel('Guests').fill('4')
  await question.getByLabel('Date').fill('2026-12-24')
  await question.getByLabel('Seating').selectOption('Outside')
  await tap(question.getByRole('button', { name: 'Send answer' }))
  await replies.getByText('I noted a table for 4 on 2026-12-24, Outside.').waitFor()
})
