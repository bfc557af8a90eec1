import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { readPage } from './support/chat-page.ts'
import { chooseMode, converse, isFocused, readShell } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe('writing', () => {
  test('[DM370] over HTTP, a message that is written during a reply is sent after it', async () => {
    const page = await testDemo.visit()
    const { say, stop, log, idle, input } = readPage(page)
    await say('[[say One.]][[wait gate-1]]')
    await stop.waitFor()
    await say('[[say Two.]]')
    const queue = page.getByRole('list', { name: 'Messages waiting to be sent' })
    await queue.getByText('[[say Two.]]').waitFor()
    await snap(page, 'queued')
    await input.press('Escape')
    expect(await input.inputValue()).toBe('[[say Two.]]')
    await input.press('Enter')
    await queue.waitFor()
    testDemo.emulator.release('gate-1')
    await log.getByText('Two.', { exact: true }).waitFor()
    await idle()
    expect(await queue.count()).toBe(0)
    expect(await log.locator('[data-role=user]').count()).toBe(2)
  })

  test('[DM370] in live mode, a message that is written during a reply interrupts it', async () => {
    const page = await testDemo.visit({ mode: 'live' })
    const { say, stop, log, idle } = readPage(page)
    await say('[[say One.]][[wait never]]')
    await stop.waitFor()
    await log.getByText('One.').last().waitFor()
    await say('[[say Two.]]')
    await log.getByText('Two.', { exact: true }).waitFor()
    await idle()
    const roles = await log
      .locator('.adk-message')
      .evaluateAll((all) => all.map(({ dataset }) => (dataset as { role?: string }).role))
    expect(roles).toEqual(['user', 'assistant', 'user', 'assistant'])
  })

  test('[DM371] the text in the input survives a reload and another chat', async () => {
    const page = await testDemo.visit()
    const { input } = readPage(page)
    await input.fill('a new chat')
    await page.reload()
    await expect.poll(() => input.inputValue()).toBe('a new chat')
    await input.fill('')
    await converse(page, '[[say First.]]')
    await input.fill('half a sentence')
    await page.reload()
    await expect.poll(() => input.inputValue()).toBe('half a sentence')
    await readShell(page).newChat.first().click()
    await expect.poll(() => input.inputValue()).toBe('')
    await page.goBack()
    await expect.poll(() => input.inputValue()).toBe('half a sentence')
  })
})

describe('tabs', () => {
  test.each(['sse', 'live'] as const)(
    '[DM372] over %s, Stop in one tab ends the reply in both',
    async (mode) => {
      const page = await testDemo.visit({ mode })
      const { say, log } = readPage(page)
      await say('[[say One.]][[wait never]]')
      await log.getByText('One.', { exact: true }).waitFor()
      await page.waitForURL('**/?chat=*')
      const other = await page.context().newPage()
      await other.goto(page.url())
      const second = readPage(other)
      await second.log.getByText('One.', { exact: true }).waitFor()
      await second.stop.click()
      for (const each of [readPage(page), second]) {
        await each.idle()
        await each.log.getByText('Stopped').waitFor()
      }
      expect(await isFocused(second.input)).toBe(true)
    },
  )

  test('[DM63] the mode belongs to the tab, and a new tab starts with the last choice', async () => {
    const page = await testDemo.visit({ mode: 'live' })
    const other = await page.context().newPage()
    await other.goto(page.url())
    await chooseMode(other, 'ADK · SSE')
    const mode = (shown: typeof page) => shown.locator('.segment:has(:checked)').first()
    const chosen = await mode(other).textContent()
    const third = await page.context().newPage()
    await third.goto(page.url())
    expect(await mode(third).textContent()).toBe(chosen)
    expect(await mode(page).textContent()).not.toBe(chosen)
    await page.reload()
    await mode(page).waitFor()
    expect(await mode(page).textContent()).not.toBe(chosen)
  })
})
