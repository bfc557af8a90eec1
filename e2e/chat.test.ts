import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { readPage } from './support/chat-page.ts'
import { openLine } from './support/line.ts'
import { openWorld, type World } from './support/world.ts'

// Shorter than the server waits for a reader to come back: only a real stop is fast enough.
const STOP_TIMEOUT_MS = 20_000

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.leave())

test.each([
  ['English', 'The sky is blue.', 'Light scatters.'],
  ['Japanese', '空が青いのは、', '光が散乱するからです。'],
])('[DM20] an answer in %s appears while it is being written', async (name, first, second) => {
  const { say, answer, idle } = readPage(await world.visit())
  await say(`[[say ${first}]][[wait ${name}]][[say ${second}]]`)

  await answer().getByText(first).waitFor()
  expect(await answer().textContent()).not.toContain(second)

  world.emulator.release(name)
  await answer().getByText(second).waitFor()
  await idle()
  expect(await answer().locator('.markdown').textContent()).toBe(first + second)
})

test('[DM20] the page says that the model is thinking until there is something to read', async () => {
  const page = await world.visit()
  const { say, answer } = readPage(page)
  await say('[[wait think]][[say Here it is.]]')
  await page.getByText('Thinking…').waitFor()
  world.emulator.release('think')
  await answer().getByText('Here it is.').waitFor()
  expect(await page.getByText('Thinking…').count()).toBe(0)
})

test('[DM20] thoughts are folded away and can be opened', async () => {
  const { say, answer } = readPage(await world.visit())
  await say('[[think I look at the sky.]][[say It is blue.]]')
  await answer().getByText('It is blue.').waitFor()
  const thoughts = answer().getByText('I look at the sky.')
  expect(await thoughts.isVisible()).toBe(false)
  await answer().getByText('Thoughts').click()
  await thoughts.waitFor()
})

test.each([
  ['What is the weather in Tokyo?', /18/],
  ['東京の天気は?', /18/],
])('[DM21] %s shows the call of the tool and answers', async (question, words) => {
  const { say, tool, answer, idle } = readPage(await world.visit())
  await say(question)
  await tool('get_weather').getByText('Done').waitFor()
  await idle()
  expect(await answer().locator('.markdown').last().textContent()).toMatch(words)

  await tool('get_weather').getByText('Details').click()
  const details = await tool('get_weather').locator('pre').allTextContents()
  expect(JSON.parse(details[0] ?? '')).toEqual({ location: 'Tokyo' })
  expect(JSON.parse(details[1] ?? '')).toMatchObject({ temperature: 18, condition: 'Cloudy' })
})

test('[DM21] pictures, sources, code and the cost of an answer are shown', async () => {
  const page = await world.visit()
  const { say, answer, idle } = readPage(page)
  await say(
    '[[say See for yourself.]][[image #1f6b5a]][[code print(6 * 7) => 42]][[ground https://example.com/sky The sky]]',
  )
  await answer().getByRole('img').waitFor()
  await idle()
  await answer().getByText('print(6 * 7)').waitFor()
  await answer().getByText('42', { exact: true }).waitFor()
  const source = answer().getByRole('link', { name: 'The sky' })
  expect(await source.getAttribute('href')).toBe('https://example.com/sky')
  expect(await answer().locator('footer').textContent()).toMatch(/\d+ tokens in, \d+ out/)
})

test(
  '[DM23] stop ends the answer in the page and at the model',
  async () => {
    const page = await world.visit()
    const { say, answer, answers, stop, idle } = readPage(page)
    await say('[[say I could go on]][[wait stop-it]][[say and on.]]')
    await answer().getByText('I could go on').waitFor()

    await stop.click()
    await idle()
    const [request] = world.asked('stop-it')
    await request?.done
    expect(request?.aborted).toBe(true)

    world.emulator.release('stop-it')
    await page.reload()
    await page.getByRole('textbox').waitFor()
    await idle()
    expect((await answers.allTextContents()).join('')).not.toContain('and on.')

    // The chat is free for the next message.
    await say('[[say Here I am.]]')
    await page.getByText('Here I am.', { exact: true }).waitFor()
  },
  STOP_TIMEOUT_MS,
)

test('[DM24] a reload in mid-answer shows the whole answer, once', async () => {
  const page = await world.visit()
  const { say, answer, answers, log, idle } = readPage(page)
  await say('[[say Before the reload,]][[wait reload]][[say and after it.]]')
  await answer().getByText('Before the reload,').waitFor()

  await page.reload()
  await answer().getByText('Before the reload,').waitFor()
  world.emulator.release('reload')
  await answer().getByText('and after it.').waitFor()
  await idle()

  expect(await answers.count()).toBe(1)
  expect(await log.locator('[data-role=user]').count()).toBe(1)
  expect(await answer().locator('.markdown').textContent()).toMatch(
    /^Before the reload, ?and after it\.$/,
  )
  expect(world.asked('[[wait reload]]')).toHaveLength(1)
})

test('[DM24] an answer that ends in the middle of the reload is not lost', async () => {
  const page = await world.visit()
  const { say, answer, answers } = readPage(page)
  await say('[[say It was running,]][[wait late]][[say and now it is not.]]')
  await answer().getByText('It was running,').waitFor()

  // The page has been told that the answer is running; it ends before the page asks to resume it.
  const chatId = new URL(page.url()).searchParams.get('chat')
  await page.route('**/stream/*/stream', async (route) => {
    world.emulator.release('late')
    const read = async (): Promise<unknown> =>
      (await page.request.get(`${world.demo.url}/chats/${chatId}/messages`)).json()
    await expect.poll(read, { timeout: 10_000 }).toMatchObject({ running: false })
    await route.continue()
  })
  await page.reload()
  await answer().getByText('and now it is not.').waitFor()
  expect(await answers.count()).toBe(1)
})

test('[DM24] a reload after the answer shows the same messages', async () => {
  const page = await world.visit()
  const { say, tool, log, idle } = readPage(page)
  await say('What is the weather in London?')
  await tool('get_weather').waitFor()
  await idle()
  const before = await log.textContent()
  await page.reload()
  await tool('get_weather').waitFor()
  expect(await log.textContent()).toBe(before)
})

test('[DM25] a rate limit says how long to wait, and trying again brings the answer', async () => {
  let tries = 0
  world.answer('busy model', () => {
    tries += 1
    return tries === 1
      ? [{ type: 'fail', status: 429, message: 'quota', retryAfterSeconds: 2 }]
      : [{ type: 'say', text: 'Now I can.' }]
  })
  const { say, alert, problem, answers, log } = readPage(await world.visit())
  await say('Are you a busy model?')
  await alert.getByText('The model is busy').waitFor()
  await problem.getByText(/Try again in [12] seconds?\./).waitFor()
  expect(await problem.textContent()).not.toContain('quota')

  await problem.getByRole('button', { name: 'Try again' }).click()
  await log.getByText('Now I can.').waitFor()
  expect(await problem.count()).toBe(0)
  expect(await answers.count()).toBe(1)
  expect(await log.locator('[data-role=user]').count()).toBe(1)
})

test('[DM25] after a lost connection the page reads on by itself, and shows the whole answer, once', async () => {
  await using line = await openLine(world.demo.url)
  const { say, answer, answers, problem, idle } = readPage(await world.visit({ url: line.url }))
  await say('[[say Before the cut,]][[wait cut]][[say and after it.]]')
  await answer().getByText('Before the cut,').waitFor()

  line.cut()
  world.emulator.release('cut')
  await answer().getByText('and after it.').waitFor()
  await idle()

  expect(await problem.count()).toBe(0)
  expect(await answers.count()).toBe(1)
  expect(await answer().locator('.markdown').textContent()).toMatch(
    /^Before the cut, ?and after it\.$/,
  )
})

test('[DM25] a message that never arrived is sent again, after those that did', async () => {
  const page = await world.visit()
  const { say, alert, problem, answers, log, idle } = readPage(page)
  await say('[[say The first answer.]]')
  await log.getByText('The first answer.', { exact: true }).waitFor()
  await idle()

  await page.context().setOffline(true)
  await say('[[say The second answer.]]')
  await alert.getByText('The connection was lost').waitFor()
  await page.context().setOffline(false)
  await problem.getByRole('button', { name: 'Reconnect' }).click()
  await log.getByText('The second answer.', { exact: true }).waitFor()
  await idle()
  expect(await answers.count()).toBe(2)
  expect(await log.locator('[data-role=user]').count()).toBe(2)
})

test('[DM25] another answer to the same question takes the place of the first', async () => {
  let tries = 0
  world.answer('any number', () => [{ type: 'say', text: `Number ${(tries += 1)}` }])
  const page = await world.visit()
  const { say, answers, log } = readPage(page)
  await say('Say any number')
  await log.getByText('Number 1').waitFor()
  await log.getByRole('button', { name: 'Try again' }).click()
  await log.getByText('Number 2').waitFor()
  expect(await answers.count()).toBe(1)
  await page.reload()
  await log.getByText('Number 2').waitFor()
  expect(await answers.count()).toBe(1)
})

test('[DM16] two browsers are two persons', async () => {
  const mine = await world.visit()
  const { say, log } = readPage(mine)
  await say('[[say This is between us.]]')
  await log.getByText('This is between us.', { exact: true }).waitFor()

  const theirs = await world.visit({ url: mine.url() })
  await theirs.getByText('This chat is not here').waitFor()
  expect(await theirs.textContent('body')).not.toContain('between us')
})

test('[DM33] every chat has an address, and the back button returns to it', async () => {
  const page = await world.visit()
  const { say, log, input } = readPage(page)
  expect(page.url()).toBe(`${world.demo.url}/`)
  await say('[[say The first chat.]]')
  await log.getByText('The first chat.', { exact: true }).waitFor()
  expect(page.url()).toMatch(/\/\?chat=[\w-]+$/)

  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
  expect(page.url()).toBe(`${world.demo.url}/`)
  expect(await input.evaluate((element) => element === document.activeElement)).toBe(true)

  await page.goBack()
  await log.getByText('The first chat.', { exact: true }).waitFor()
})
