import { validateUIMessages } from 'ai-7'
import { expect, test } from 'vitest'

import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { assistant, weather } from '../support/agents.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { serve } from '../support/serve.ts'
import { openSocketPage } from './support/socket-chat.ts'

const hanako = { 'x-api-key': 'hanako' }

test('[WS1] the stock client of AI SDK 7 chats over the socket, with tools and history', async () => {
  await using server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    agent: (model) => assistant(model, { tools: [weather] }),
  })
  await using page = openSocketPage(server.url)
  const chat = page.open()
  await chat.send('[[call get_weather {"place":"東京"}]][[then]][[say It is 18 degrees.]]')
  expect(chat.error).toBeUndefined()
  expect(chat.text).toBe('It is 18 degrees.')
  expect(toolParts(chat.lastMessage)).toMatchObject([
    { state: 'output-available', output: { celsius: 18 } },
  ])
  await chat.send('[[say And still here.]]')
  expect(chat.messages).toHaveLength(4)
  expect(JSON.stringify(server.emulator.requests.at(-1)?.body)).toContain('18 degrees')
  await chat.regenerate()
  expect(chat.messages).toHaveLength(4)
  const { messages } = await server.browser().messages()
  expect(messages).toEqual(chat.messages)
  await validateUIMessages({ messages })
  expect(page.sockets).toHaveLength(1)
})

test('[WS1] the stock client approves and denies over the socket, in one message', async () => {
  await using testBridge = await TestBridge.open()
  await using page = openSocketPage(testBridge.url, hanako)
  const chat = page.open()
  await chat.send(`${callPayment(50)}[[then]]${callPayment(70)}[[then]][[say Done.]]`)
  expect(chat.asked).toHaveLength(1)
  expect(testBridge.wallet.payments).toEqual([])
  await chat.decide(true)
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(chat.asked).toHaveLength(1)
  await chat.decide({ approved: false, reason: 'too much' })
  expect(chat.error).toBeUndefined()
  expect(chat.messages).toHaveLength(2)
  expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual([
    'output-available',
    'output-denied',
  ])
  expect(chat.text).toBe('Done.')
  expect(testBridge.wallet.balance).toBe(950)
  await validateUIMessages({ messages: chat.messages })
})

test('[WS4] stop() stops the model at once, also within the grace time, and the next message gets a reply', async () => {
  await using server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    disconnectGraceMs: 60_000,
  })
  await using page = openSocketPage(server.url)
  const chat = page.open()
  const answer = chat.send('[[say So far.]][[wait never]][[say Not this.]]')
  await chat.untilShown('So far.')
  const request = await server.emulator.nextRequest()
  await chat.stop()
  await answer
  await request.done
  expect(request.aborted).toBe(true)
  await chat.send('[[say Next.]]')
  expect(chat.text).toBe('Next.')
  expect(page.sockets).toHaveLength(1)
})

test('[WS5] a page that lost its socket during a reply resumes and has the whole reply, once', async () => {
  await using server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    disconnectGraceMs: 60_000,
  })
  await using page = openSocketPage(server.url)
  const chat = page.open()
  const answer = chat.send('[[say One.]][[wait more]][[say Two.]]')
  await chat.untilShown('One.')
  page.sockets[0]?.terminate()
  await answer
  expect(chat.status).toBe('error')
  const resumed = chat.resume()
  await chat.until(({ status }) => status === 'streaming')
  server.emulator.release('more')
  await resumed
  expect(chat.text).toBe('One.Two.')
  expect(partTypes(chat.lastMessage)).toEqual(['step-start', 'text'])
  expect(page.sockets).toHaveLength(2)
  // No turn runs any more: there is nothing to resume, which is not an error.
  await chat.resume()
  expect(chat.text).toBe('One.Two.')
  expect(chat.error).toBeUndefined()
})

test('[WS2] several chats share a socket without waiting for each other', async () => {
  await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
  await using page = openSocketPage(server.url)
  const slow = page.open('slow')
  const quick = page.open('quick')
  const answer = slow.send('[[say Slowly.]][[wait later]][[say Done.]]')
  await slow.untilShown('Slowly.')
  await quick.send('[[say Quickly.]]')
  expect(quick.text).toBe('Quickly.')
  server.emulator.release('later')
  await answer
  expect(slow.text).toBe('Slowly.Done.')
  expect(page.sockets).toHaveLength(1)
})

test('[WS1] a rejected request is an error in the stock client, and the socket continues', async () => {
  await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
  await using page = openSocketPage(server.url)
  const first = page.open()
  const second = page.open()
  const answer = first.send('[[say One.]][[wait more]]')
  await first.untilShown('One.')
  await second.send('Me too.')
  expect(second.error?.message).toContain('still being written')
  server.emulator.release('more')
  await answer
  expect(first.error).toBeUndefined()
  await second.send('[[say Now.]]')
  expect(second.text).toBe('Now.')
  expect(page.sockets).toHaveLength(1)
})
