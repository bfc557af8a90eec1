import { expect, test } from 'vitest'

import { readAccount } from './support/account.ts'
import { decide } from './support/approvals.ts'
import { chooseMode } from './support/app-shell.ts'
import { chatPage } from './support/chat-page.ts'
import { useTestDemo } from './support/use-test-demo.ts'

/** A name that browsers do not take for the machine itself, as they do `localhost`. */
const HOST = 'demo.test'

const testDemo = useTestDemo({ variables: { ALLOWED_HOSTS: HOST } })

test('[DM1142] over plain HTTP from another device, a payment is approved, and what needs HTTPS says so', async () => {
  const page = await testDemo.openPage({
    url: testDemo.demo.url.replace('127.0.0.1', HOST),
    flags: [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`],
    permissions: ['geolocation'],
  })
  expect(await page.evaluate(() => isSecureContext)).toBe(false)
  const { send, tool } = chatPage(page)
  await send('Send $50 to Alice')
  await decide(tool('Alice'), 'approve')
  await tool('Alice').getByText('Approved.').waitFor()
  expect(await readAccount(testDemo, page).payments()).toEqual(['Alice 50'])

  await send('Where am I?')
  await decide(tool('location'), 'approve')
  await page.getByText('Browsers give the location only to pages with HTTPS').first().waitFor()

  await send('Send $600 to Bob')
  const card = tool('Bob')
  await decide(card, 'approve')
  await card.getByRole('button', { name: 'Ask another person…' }).click()
  await card.getByRole('img', { name: 'QR code of the link below' }).waitFor()
  const link = await card.getByLabel('Link to this approval').inputValue()
  expect(new URL(link).host).toBe(new URL(page.url()).host)

  await chooseMode(page, 'Talk')
  await page.getByRole('button', { name: 'Talk hands-free' }).click()
  await page.getByText('Voice needs a secure connection.').first().waitFor()
  await send('Send $60 to Carol')
  await decide(tool('Carol'), 'approve')
  await tool('Carol').getByText('Approved.').waitFor()
})
