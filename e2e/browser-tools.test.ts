import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { watchToolResults } from './support/tool-results.ts'
import { readAccount } from './support/account.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

const KYOTO = { latitude: 35.0116, longitude: 135.7681 }

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[DM42] the position is read once, after the approval, and sent to the model',
    async () => {
      const page = await testDemo.openPage({
        mode,
        permissions: ['geolocation'],
        geolocation: KYOTO,
      })
      const { send, tool, waitUntilIdle, replies } = chatPage(page)
      const countReads = await countCalls(page, 'navigator.geolocation.getCurrentPosition')
      const results = watchToolResults(testDemo)
      const positions = () => results().filter((result) => JSON.stringify(result).includes('35.01'))
      await send('Where am I?')
      const location = tool('get_location')
      await location.getByText('Share your location with the assistant').waitFor()
      await location.getByRole('button', { name: 'Approve' }).waitFor()
      const [id = ''] = await readAccount(testDemo, page).pendingApprovals()
      expect(await countReads()).toBe(0)

      await location.getByRole('button', { name: 'Approve' }).click()
      await location.getByText('Approved.', { exact: true }).waitFor()
      await replies.locator('.markdown').last().waitFor()
      await waitUntilIdle()
      expect(await replies.locator('.markdown').last().textContent()).toContain('35.01')
      expect(await countReads()).toBe(1)
      expect(positions()).toHaveLength(1)
      await takeScreenshot(page, `location-${mode}`)
      expect(await readAccount(testDemo, page).history(id)).toContain('approved')

      await page.reload()
      await location.getByText('Approved.', { exact: true }).waitFor()
      await waitUntilIdle()
      expect(positions()).toHaveLength(1)
    },
  )
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM43] the music changes, and can be muted', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, tool, waitUntilIdle } = chatPage(page)
    await page.evaluate(RECORD_MUSIC)
    const results = watchToolResults(testDemo)
    await send('Play track 1')
    await page.getByRole('button', { name: 'Mute track 1' }).waitFor()
    await tool('change_bgm').getByText('Done').waitFor()
    await waitUntilIdle()
    await send('トラック2に変更して')
    await page.getByRole('button', { name: 'Mute track 2' }).waitFor()
    await tool('change_bgm').nth(1).getByText('Done').waitFor()
    await waitUntilIdle()
    expect(results().filter(isMusicResult)).toHaveLength(2)
    await takeScreenshot(page, `music-${mode}`)

    const tracks = await page.evaluate<PlayedTrack[]>('window.playedTracks')
    expect(tracks).toHaveLength(2)
    expect(tracks.every(({ loudest, loop }) => loudest > 0.1 && loop)).toBe(true)
    expect(tracks[0]?.seconds).not.toBe(tracks[1]?.seconds)

    const mute = page.getByRole('button', { name: 'Mute track 2' })
    await mute.click()
    expect(await mute.getAttribute('aria-pressed')).toBe('true')
    await mute.click()
    expect(await mute.getAttribute('aria-pressed')).toBe('false')
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[DM43] of two tabs with the same call, one runs it', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, waitUntilIdle, log } = chatPage(page)
    await send('[[say Hello.]]')
    await log.getByText('Hello.', { exact: true }).waitFor()
    const other = await page.context().newPage()
    await other.goto(page.url())
    await chatPage(other).log.getByText('Hello.', { exact: true }).waitFor()

    const results = watchToolResults(testDemo)
    await send('Play track 2')
    await chatPage(other).tool('change_bgm').getByText('Done').waitFor()
    await waitUntilIdle()
    await chatPage(other).waitUntilIdle()
    // The tab that claimed the call first has run it.
    expect(results().filter(isMusicResult)).toHaveLength(1)
    const playing = await Promise.all(
      [page, other].map((tab) => tab.getByRole('button', { name: /Mute/ }).count()),
    )
    expect(new Set(playing)).toEqual(new Set([0, 1]))
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM42] the model receives an error if the browser refuses the position', async () => {
    const page = await testDemo.openPage({ mode, permissions: [] })
    const { send, tool, waitUntilIdle, replies } = chatPage(page)
    const results = watchToolResults(testDemo)
    await send('現在地を教えて')
    const location = tool('get_location')
    await location.getByRole('button', { name: 'Approve' }).click()
    await location.getByText('Location is blocked for this page.').waitFor()
    await replies.locator('.markdown').last().waitFor()
    await waitUntilIdle()
    expect(await location.getByText('Failed', { exact: true }).count()).toBe(1)
    expect(JSON.stringify(results())).toContain('Location is blocked for this page.')
    await takeScreenshot(page, `location-refused-${mode}`)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[DM42] a position that was approved in another tab is read in the tab with the chat',
    async () => {
      const page = await testDemo.openPage({
        mode,
        permissions: ['geolocation'],
        geolocation: KYOTO,
      })
      const { send, tool, replies } = chatPage(page)
      await send('Where am I?')
      await tool('get_location').getByRole('button', { name: 'Approve' }).waitFor()
      await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
      const item = page.getByRole('listitem', { name: 'Share your location with the assistant' })
      await item.getByRole('button', { name: 'Approve' }).click()
      await tool('get_location').getByText('Approved.', { exact: true }).waitFor()
      await expect.poll(() => replies.locator('.markdown').last().textContent()).toContain('35.01')
      expect(await replies.count()).toBe(1)
    },
  )

  longTest('[DM42] a denied position is not read', async () => {
    const page = await testDemo.openPage({ mode, permissions: ['geolocation'], geolocation: KYOTO })
    const { send, tool, waitUntilIdle, replies } = chatPage(page)
    const countReads = await countCalls(page, 'navigator.geolocation.getCurrentPosition')
    await send('Where am I?')
    await tool('get_location').getByRole('button', { name: 'Deny…' }).click()
    await tool('get_location').getByRole('button', { name: 'Deny', exact: true }).click()
    await tool('get_location').getByText('Denied. Nothing was done.').waitFor()
    await replies.locator('.markdown').last().waitFor()
    await waitUntilIdle()
    expect(await countReads()).toBe(0)
  })
})

interface PlayedTrack {
  readonly seconds: number
  readonly loudest: number
  readonly loop: boolean
}

// Records the length and the highest level of each track that is played.
const RECORD_MUSIC = `
  window.playedTracks = []
  const start = AudioBufferSourceNode.prototype.start
  AudioBufferSourceNode.prototype.start = function (...args) {
    const loudest = Math.max(...this.buffer.getChannelData(0).filter((_, index) => index % 64 === 0))
    window.playedTracks.push({ seconds: this.buffer.duration, loudest, loop: this.loop })
    return start.apply(this, args)
  }
`

/** Returns a function that counts the page's calls of a browser function. */
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

/** Returns whether a result is that of `change_bgm`. */
function isMusicResult(result: object): boolean {
  return JSON.stringify(result).includes('"track"')
}
