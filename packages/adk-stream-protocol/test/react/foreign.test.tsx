import { expect, test } from 'vitest'

import { NativeServer } from './support/native-server.ts'
import { TestBrowser } from './support/chat-page.tsx'

const NOWHERE = { url: 'http://127.0.0.1:1' }

test('[RE8] over a transport of the AI SDK alone an approval is answered once, and the answer goes on', async () => {
  const server = new NativeServer([{ call: 'pay', input: { amount: 50 } }], [{ say: 'Paid.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({ transport: server.transport() })
  expect(page.chat.attached).toBeUndefined()
  page.say('Pay.')
  await page.click('Approve')
  await page.until('Paid.')
  await page.untilReady()
  expect(server.payments).toEqual([{ amount: 50 }])
  expect(server.requests).toHaveLength(2)
  expect(page.text).toContain('Approved.')
  expect(page.chat.connection).toEqual({ state: 'idle' })
})

test('[RE8] a denial as well, with its reason', async () => {
  const server = new NativeServer(
    [{ call: 'pay', input: { amount: 50 } }],
    [{ say: 'As you wish.' }],
  )
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({ transport: server.transport() })
  page.say('Pay.')
  await page.click('Deny…')
  await page.user.keyboard('Not now.{Enter}')
  await page.until('As you wish.')
  await page.untilReady()
  expect(server.payments).toEqual([])
  expect(server.told).toContain('Not now.')
  expect(page.text).toContain('Reason: Not now.')
})

test('[RE8][RE9] a tool of the page runs once, and its output is sent without a click', async () => {
  const server = new NativeServer([{ call: 'get_location', input: {} }], [{ say: 'In Tokyo.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  let runs = 0
  const page = browser.show({
    transport: server.transport(),
    tools: { get_location: () => ({ place: `Tokyo ${(runs += 1)}` }) },
  })
  page.say('Where am I?')
  await page.until('In Tokyo.')
  await page.untilReady()
  expect(runs).toBe(1)
  expect(server.told).toContain('Tokyo 1')
  expect(server.requests).toHaveLength(2)
})

test('[RE8][RE9] what a tool of the page throws is told to the model', async () => {
  const server = new NativeServer([{ call: 'get_location', input: {} }], [{ say: 'I see.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({
    transport: server.transport(),
    tools: { get_location: () => Promise.reject(new Error('The person said no.')) },
  })
  page.say('Where am I?')
  await page.until('I see.')
  expect(server.told).toContain('The person said no.')
})
