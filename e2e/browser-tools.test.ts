import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { listenToResults } from './support/model-told.ts'
import { readBooks } from './support/payments.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

const KYOTO = { latitude: 35.0116, longitude: 135.7681 }

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM42] the position is read once, after the approval, and sent to the model', async () => {
    const page = await testDemo.visit({ mode, permissions: ['geolocation'], geolocation: KYOTO })
    const { say, tool, idle, answers } = readPage(page)
    const looked = await countCalls(page, 'navigator.geolocation.getCurrentPosition')
    const results = listenToResults(testDemo)
    const positions = () => results().filter((result) => JSON.stringify(result).includes('35.01'))
    await say('Where am I?')
    const location = tool('get_location')
    await location.getByText('Share your location with the assistant').waitFor()
    await location.getByRole('button', { name: 'Approve' }).waitFor()
    const [id = ''] = await readBooks(testDemo, page).pending()
    expect(await looked()).toBe(0)

    await location.getByRole('button', { name: 'Approve' }).click()
    await location.getByText('Approved.', { exact: true }).waitFor()
    await answers.locator('.markdown').last().waitFor()
    await idle()
    expect(await answers.locator('.markdown').last().textContent()).toContain('35.01')
    expect(await looked()).toBe(1)
    expect(positions()).toHaveLength(1)
    await snap(page, `location-${mode}`)
    expect(await readBooks(testDemo, page).history(id)).toContain('approved')

    await page.reload()
    await location.getByText('Approved.', { exact: true }).waitFor()
    await idle()
    expect(positions()).toHaveLength(1)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM43] the music changes, and can be muted', async () => {
    const page = await testDemo.visit({ mode })
    const { say, tool, idle } = readPage(page)
    await page.evaluate(LISTEN)
    const results = listenToResults(testDemo)
    await say('Play track 1')
    await page.getByRole('button', { name: 'Mute track 1' }).waitFor()
    await tool('change_bgm').getByText('Done').waitFor()
    await idle()
    await say('トラック2に変更して')
    await page.getByRole('button', { name: 'Mute track 2' }).waitFor()
    await tool('change_bgm').nth(1).getByText('Done').waitFor()
    await idle()
    expect(results().filter(isTrack)).toHaveLength(2)
    await snap(page, `music-${mode}`)

    const heard = await page.evaluate<Heard[]>('window.heard')
    expect(heard).toHaveLength(2)
    expect(heard.every(({ loudest, loop }) => loudest > 0.1 && loop)).toBe(true)
    expect(heard[0]?.seconds).not.toBe(heard[1]?.seconds)

    const mute = page.getByRole('button', { name: 'Mute track 2' })
    await mute.click()
    expect(await mute.getAttribute('aria-pressed')).toBe('true')
    await mute.click()
    expect(await mute.getAttribute('aria-pressed')).toBe('false')
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest('[DM43] of two tabs with the same call, one runs it', async () => {
    const page = await testDemo.visit({ mode })
    const { say, idle, log } = readPage(page)
    await say('[[say Hello.]]')
    await log.getByText('Hello.', { exact: true }).waitFor()
    const other = await page.context().newPage()
    await other.goto(page.url())
    await readPage(other).log.getByText('Hello.', { exact: true }).waitFor()

    const results = listenToResults(testDemo)
    await say('Play track 2')
    await readPage(other).tool('change_bgm').getByText('Done').waitFor()
    await idle()
    await readPage(other).idle()
    // From whichever tab took the call first.
    expect(results().filter(isTrack)).toHaveLength(1)
    const playing = await Promise.all(
      [page, other].map((tab) => tab.getByRole('button', { name: /Mute/ }).count()),
    )
    expect(new Set(playing)).toEqual(new Set([0, 1]))
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  longTest('[DM42] the model receives an error if the browser refuses the position', async () => {
    const page = await testDemo.visit({ mode, permissions: [] })
    const { say, tool, idle, answers } = readPage(page)
    const results = listenToResults(testDemo)
    await say('現在地を教えて')
    const location = tool('get_location')
    await location.getByRole('button', { name: 'Approve' }).click()
    await location.getByText('Location is blocked for this page.').waitFor()
    await answers.locator('.markdown').last().waitFor()
    await idle()
    expect(await location.getByText('Failed', { exact: true }).count()).toBe(1)
    expect(JSON.stringify(results())).toContain('Location is blocked for this page.')
    await snap(page, `location-refused-${mode}`)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest(
    '[DM42] a position that was approved in another tab is read in the tab with the chat',
    async () => {
      const page = await testDemo.visit({ mode, permissions: ['geolocation'], geolocation: KYOTO })
      const { say, tool, answers } = readPage(page)
      await say('Where am I?')
      await tool('get_location').getByRole('button', { name: 'Approve' }).waitFor()
      await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
      const item = page.getByRole('listitem', { name: 'Share your location with the assistant' })
      await item.getByRole('button', { name: 'Approve' }).click()
      await tool('get_location').getByText('Approved.', { exact: true }).waitFor()
      await expect.poll(() => answers.locator('.markdown').last().textContent()).toContain('35.01')
      expect(await answers.count()).toBe(1)
    },
  )

  longTest('[DM42] a denied position is not read', async () => {
    const page = await testDemo.visit({ mode, permissions: ['geolocation'], geolocation: KYOTO })
    const { say, tool, idle, answers } = readPage(page)
    const looked = await countCalls(page, 'navigator.geolocation.getCurrentPosition')
    await say('Where am I?')
    await tool('get_location').getByRole('button', { name: 'Deny…' }).click()
    await tool('get_location').getByRole('button', { name: 'Deny', exact: true }).click()
    await tool('get_location').getByText('Denied. It did not run.').waitFor()
    await answers.locator('.markdown').last().waitFor()
    await idle()
    expect(await looked()).toBe(0)
  })
})

interface Heard {
  readonly seconds: number
  readonly loudest: number
  readonly loop: boolean
}

// Notes what is played: how long it is and how loud it gets.
const LISTEN = `
  window.heard = []
  const start = AudioBufferSourceNode.prototype.start
  AudioBufferSourceNode.prototype.start = function (...args) {
    const loudest = Math.max(...this.buffer.getChannelData(0).filter((_, index) => index % 64 === 0))
    window.heard.push({ seconds: this.buffer.duration, loudest, loop: this.loop })
    return start.apply(this, args)
  }
`

/** Counts how often the page calls a function of the browser. */
async function countCalls(page: Page, path: string): Promise<() => Promise<number>> {
  const dot = path.lastIndexOf('.')
  await page.evaluate(`
    window.calls = 0
    const { ${path.slice(dot + 1)}: original } = ${path.slice(0, dot)}
    ${path} = (...args) => {
      window.calls += 1
      return original.apply(${path.slice(0, dot)}, args)
    }
  `)
  return () => page.evaluate<number>('window.calls')
}

/** Whether a result is that of a change of the music. */
function isTrack(result: object): boolean {
  return JSON.stringify(result).includes('"track"')
}
