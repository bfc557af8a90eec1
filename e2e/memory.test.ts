import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { readPage } from './support/chat-page.ts'
import { chooseMode, converse } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

longTest('[DM81] the agent knows in each mode what was said in the other', async () => {
  const page = await testDemo.visit()
  const { say, log, idle, answers } = readPage(page)
  await converse(page, 'My name is Hanako. [[say Good day, Hanako.]]')

  await chooseMode(page, 'Talk')
  await say('[[say Live, I know you.]]')
  await log.getByText('Live, I know you.', { exact: true }).waitFor()
  await idle()
  const [session, ...others] = testDemo.emulator.live.sessions
  expect(others).toEqual([])
  expect(JSON.stringify(session?.history)).toContain('My name is Hanako.')
  expect(JSON.stringify(session?.history)).toContain('Good day, Hanako.')
  await snap(page, 'memory-live')

  await chooseMode(page, 'Chat')
  await say('[[say Back again.]]')
  await log.getByText('Back again.', { exact: true }).waitFor()
  await idle()
  const [request, ...more] = testDemo.asked('Back again.')
  expect(more).toEqual([])
  const told = JSON.stringify(request?.body)
  for (const words of ['My name is Hanako.', 'Good day, Hanako.', 'Live, I know you.']) {
    expect(told).toContain(words)
  }
  expect(await answers.count()).toBe(3)
  expect(await log.locator('[data-role=user]').count()).toBe(3)
  await snap(page, 'memory-sse')

  const before = await log.textContent()
  await page.reload()
  await log.getByText('Back again.', { exact: true }).waitFor()
  expect(await log.textContent()).toBe(before)
})

test('[DM81] a reply that is being streamed continues in the other mode', async () => {
  const page = await testDemo.visit()
  const { say, answer, answers, idle } = readPage(page)
  await say('[[say Begun over HTTP,]][[wait switch]][[say ended on the socket.]]')
  await answer().getByText('Begun over HTTP,').waitFor()
  await chooseMode(page, 'Talk')
  await answer().getByText('Begun over HTTP,').waitFor()
  testDemo.emulator.release('switch')
  await answer().getByText('ended on the socket.').waitFor()
  await idle()
  expect(await answers.count()).toBe(1)
  expect(testDemo.told('[[wait switch]]')).toBe(1)
})

test('[DM49] [DM63] in direct mode Gemini replies, and calls a tool of the server and one of the page', async () => {
  const page = await testDemo.visit({ mode: 'direct' })
  const { say, log, tool, idle, answers } = readPage(page)
  await say('[[say Without]][[wait direct]][[say an agent.]]')
  await log.getByText('Without', { exact: true }).waitFor()
  testDemo.emulator.release('direct')
  await log.getByText(/^Without ?an agent\.$/).waitFor()
  await idle()

  await say('What is the weather in Tokyo?')
  await tool('get_weather').getByText('Done').waitFor()
  await expect.poll(() => answers.nth(1).locator('.markdown').last().textContent()).toMatch(/18/)
  await idle()

  await say('Play track 2')
  await page.getByRole('button', { name: 'Mute track 2' }).waitFor()
  await tool('change_bgm').getByText('Done').waitFor()
  await answers.nth(2).locator('.markdown').last().waitFor()
  await idle()
  expect(await tool('change_bgm').count()).toBe(1)
  await snap(page, 'direct')
})

test('[DM49] in direct mode a reply can be stopped and repeated, and a message edited', async () => {
  let tries = 0
  testDemo.answer('a direct number', () => [{ type: 'say', text: `Number ${(tries += 1)}` }])
  const page = await testDemo.visit({ mode: 'direct' })
  const { say, log, stop, idle, answer, answers } = readPage(page)
  await say('[[say I could go on]][[wait direct-stop]][[say and on.]]')
  await answer().getByText('I could go on').waitFor()
  await stop.click()
  await idle()
  await expect.poll(() => testDemo.asked('direct-stop')[0]?.aborted).toBe(true)
  expect(await answer().textContent()).not.toContain('and on.')

  await say('Say a direct number')
  await log.getByText('Number 1').waitFor()
  await idle()
  await log.getByRole('button', { name: 'Try again' }).click()
  await log.getByText('Number 2').waitFor()
  await idle()
  expect(await answers.count()).toBe(2)

  const said = log.locator('[data-role=user]').nth(1)
  await said.getByRole('button', { name: 'Edit and send again' }).click()
  await page.getByLabel('Edit the message').fill('[[say Something else.]]')
  await page.keyboard.press('Enter')
  await log.getByText('Something else.', { exact: true }).waitFor()
  await idle()
  expect(await answers.count()).toBe(2)
  expect(await log.textContent()).not.toContain('Number')
})
