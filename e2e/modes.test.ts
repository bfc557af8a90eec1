import { readFile } from 'node:fs/promises'

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { readPage } from './support/chat-page.ts'
import { chooseMode } from './support/shell-page.ts'
import { readBooks } from './support/payments.ts'
import { openWorld, type World } from './support/world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.leave())

test('[DM63] what waits in one mode of the agent is decided in the other, and goes on there', async () => {
  const page = await world.visit()
  const { say, tool, answer, log, input, idle } = readPage(page)
  await say('Send $50 to Alice')
  await tool('process_payment').getByRole('button', { name: 'Approve' }).waitFor()
  await idle()
  await input.fill('half a thought')
  await chooseMode(page, 'ADK · Live')
  await page.getByRole('button', { name: 'Hold to talk' }).waitFor()
  expect(await input.inputValue()).toBe('half a thought')
  await tool('process_payment').getByRole('button', { name: 'Approve' }).click()
  await tool('process_payment').getByText('Done').waitFor()
  await answer().getByText('$950').waitFor()
  expect(await readBooks(world, page).balance()).toBe(950)

  await chooseMode(page, 'ADK · SSE')
  await page.getByRole('button', { name: /^Talk: switches/ }).waitFor()
  await say('[[say Still here.]]')
  await answer(1).getByText('Still here.').waitFor()
  expect(await log.getByRole('article').count()).toBe(4)
})

test('[DM49] Gemini alone asks and pays in the same cards, and its conversation outlives a reload', async () => {
  const page = await world.visit()
  const { say, tool, answer, idle, log } = readPage(page)
  await chooseMode(page, 'Gemini direct')
  await say('Send $50 to Alice')
  await tool('process_payment').getByRole('button', { name: 'Approve' }).waitFor()
  await idle()
  await page.reload()
  await tool('process_payment').getByRole('button', { name: 'Approve' }).click()
  await tool('process_payment').getByText('Done').waitFor()
  await answer().getByText('$950').waitFor()
  await idle()
  await say('Play track 2')
  await tool('change_bgm').getByText('Done').waitFor()
  await page.getByRole('button', { name: 'Mute track 2' }).waitFor()
  await idle()
  expect(await readBooks(world, page).balance()).toBe(950)

  await page.reload()
  await answer(1).waitFor()
  expect(await log.getByRole('article').count()).toBe(4)
  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
})

test('[IN5] a conversation is recorded, saved, and played in its own place', async () => {
  const page = await world.visit({ viewport: { width: 1400, height: 800 } })
  const { say, answer, idle, log, input } = readPage(page)
  await page.getByRole('button', { name: 'Show the inspector' }).click()
  await page.getByRole('tab', { name: 'Recording' }).click()
  await page.getByRole('button', { name: 'Record', exact: true }).click()
  await say('[[say Recorded words.]]')
  await answer().getByText('Recorded words.').waitFor()
  await idle()
  await page.getByRole('button', { name: 'Stop recording' }).click()
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  const file = await (await downloading).path()
  expect(await readFile(file, 'utf8')).toContain('Recorded ')

  await page.getByRole('button', { name: 'Play', exact: true }).click()
  const replay = page.getByRole('region', { name: 'Replay' })
  await replay.getByText('Recorded words.', { exact: true }).waitFor()
  expect(await input.count()).toBe(0)
  await page.getByRole('button', { name: 'Back to the chat' }).click()
  await input.waitFor()
  expect(await log.getByRole('article').count()).toBe(2)
})
