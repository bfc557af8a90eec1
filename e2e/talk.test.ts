import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { readPage } from './support/chat-page.ts'
import { hearMusic, hearVoice } from './support/hear-page.ts'
import { syllables } from './support/make-wav.ts'
import { readBooks } from './support/payments.ts'
import { snap } from './support/snap.ts'
import { readTalk, visitToTalk } from './support/talk-page.ts'
import { violations } from './support/violations.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo({}, { live: { playback: 'real-time' } })
})
afterEach(() => testDemo.leave())
afterAll(() => testDemo[Symbol.asyncDispose]())

const SILENCE = [{ hertz: 0, ms: 1_000 }]
/** Something that takes a second to say, and then silence for so long that it is said once in a test. */
const SPEECH = [{ hertz: 0, ms: 300 }, ...syllables(440, 1_000), { hertz: 0, ms: 60_000 }]
const LONG = 'This is a long answer that takes its time. '.repeat(8)

test('[DM17] [DM48] a new chat can start with hands-free speech; both sides are heard and transcribed', async () => {
  testDemo.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
  const page = await visitToTalk(testDemo, SPEECH)
  const { handsFree, end, heard, speaking, listening, off } = readTalk(page)
  const { log, answer } = readPage(page)
  await handsFree.click()
  await heard()
  await speaking()
  await snap(page, 'talk-live')
  await listening()
  await log.locator('[data-role=user]').getByText('Good morning, Hanako').waitFor()
  await answer().getByText('Good morning, Hanako.').waitFor()
  expect(await readPage(page).answers.count()).toBe(1)
  const { samples } = await hearVoice(page)
  expect(samples).toBeGreaterThan(12_000)

  await end.click()
  await off()
  await page.reload()
  await answer().getByText('Good morning, Hanako.').waitFor()
  expect(await log.locator('[data-role=user]').count()).toBe(1)
})

const HOLDS = [
  ['the pointer', 'pointer'],
  ['a key', 'key'],
]

longTest.each(HOLDS)(
  '[DM48] speech is sent while the button is held with %s',
  async (_name, by) => {
    testDemo.emulator.live.queueTranscript(`[[say Held by ${by}.]]`)
    const page = await visitToTalk(testDemo, syllables(440, 2_000))
    const { hold, heard, speaking } = readTalk(page)
    await hold.focus()
    await hold.hover()
    await (by === 'pointer' ? page.mouse.down() : page.keyboard.down('Space'))
    await heard()
    expect(await hold.getAttribute('aria-pressed')).toBe('true')
    await (by === 'pointer' ? page.mouse.up() : page.keyboard.up('Space'))
    await speaking()
    await readPage(page).answer().getByText(`Held by ${by}.`).waitFor()
    expect(await hold.getAttribute('aria-pressed')).toBe('false')
  },
)

longTest(
  '[DM26] [DM48] Escape interrupts the model, and the next message gets a spoken reply',
  async () => {
    const page = await visitToTalk(testDemo, SILENCE)
    const { handsFree, speaking, listening } = readTalk(page)
    const { say, answer } = readPage(page)
    await handsFree.click()
    await listening()
    expect(await violations(page)).toEqual([])
    await say(`[[say ${LONG}]]`)
    await speaking()
    await expect.poll(async () => (await hearVoice(page)).samples).toBeGreaterThan(2_400)
    await page.keyboard.press('Escape')
    await listening()
    await expect.poll(async () => (await hearVoice(page)).level).toBe(0)
    await say('[[say Another.]]')
    await speaking()
    await answer(1).getByText('Another.').waitFor()
  },
)

// In `npm test`, this is tested with a small page.
longTest('[DM48] [VO4] speech interrupts the model', async () => {
  testDemo.emulator.live.queueTranscript('[[say Yes?]]')
  const page = await visitToTalk(testDemo, [
    { hertz: 0, ms: 4_000 },
    ...syllables(440, 1_000),
    { hertz: 0, ms: 8_000 },
  ])
  const { handsFree, speaking, heard, listening } = readTalk(page)
  const { say, answers } = readPage(page)
  await handsFree.click()
  await listening()
  await say(`[[say ${LONG}]]`)
  await speaking()
  await heard()
  await answers.getByText('Yes?').waitFor()
  expect(await answers.count()).toBe(2)
})

test('[DM90] [DM48] [DM680] a payment is approved during speech on a phone, and made once', async () => {
  testDemo.emulator.live.queueTranscript('Send $30 to Alice')
  const page = await visitToTalk(testDemo, SPEECH, { viewport: { width: 390, height: 740 } })
  const { handsFree, end } = readTalk(page)
  const { tool } = readPage(page)
  const books = readBooks(testDemo, page)
  await handsFree.click()
  const approve = tool('Alice').getByRole('button', { name: 'Approve' })
  await approve.waitFor()
  await snap(page, 'talk-approval-live')
  await expect.poll(() => isUncovered(approve)).toBe(true)
  // The other controls are in the row of the round button.
  const middleOf = async (part: string) => {
    const box = await page.locator(part).boundingBox()
    return box ? Math.round(box.y + box.height / 2) : undefined
  }
  expect(await middleOf('.microphone')).toBe(await middleOf('.adk-stage-main'))
  // After the phone is turned, and at a zoom of 400 %, the card has no room: it is pinned.
  const pinned = page.getByRole('region', { name: 'Pending approval' })
  const pinnedApprove = pinned.getByRole('button', { name: 'Approve $30.00' })
  for (const viewport of [
    { width: 740, height: 390 },
    { width: 320, height: 225 },
  ]) {
    await page.setViewportSize(viewport)
    await page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 0))
    await expect.poll(() => isUncovered(pinnedApprove)).toBe(true)
    expect(await isUncovered(pinned.getByText('Send $30.00 to Alice'))).toBe(true)
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(viewport.height)
  }
  expect(await violations(page)).toEqual([])
  await pinnedApprove.click()
  await tool('Alice').getByText('Approved.').waitFor()
  await tool('Alice').getByText('Done').waitFor()
  expect(await end.isVisible()).toBe(true)
  expect(await books.balance()).toBe(970)
})

test('[DM91] a blocked microphone is explained, and written messages still work', async () => {
  const page = await visitToTalk(testDemo, SILENCE, { person: 'refuses' })
  const { handsFree, until } = readTalk(page)
  await handsFree.click()
  await until('The microphone is blocked. Allow it for this page in the browser settings')
  await snap(page, 'talk-refused-live')
  await readPage(page).say('[[say Written, then.]]')
  await readPage(page).answer().getByText('Written, then.').waitFor()
  expect(testDemo.told('Written, then.')).toBe(1)
})

longTest('[DM69] the music is quieter while the model speaks', async () => {
  const page = await visitToTalk(testDemo, SILENCE)
  const { handsFree, speaking, listening } = readTalk(page)
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('radio', { name: 'Track 1' }).click({ force: true })
  await page.keyboard.press('Escape')
  await handsFree.click()
  await listening()
  const level = async (): Promise<number> => (await hearMusic(page)).level
  await expect.poll(level).toBeGreaterThan(0.01)
  const loudest = await loudestOf(level)
  await readPage(page).say(`[[say ${LONG}]]`)
  await speaking()
  await expect.poll(() => loudestOf(level)).toBeLessThan(loudest / 2)
  await page.keyboard.press('Escape')
  await listening()
  await expect.poll(() => loudestOf(level)).toBeGreaterThan(loudest / 2)
})

/** The loudest of a stretch of music, which has its rests. */
async function loudestOf(level: () => Promise<number>): Promise<number> {
  let loudest = 0
  for (let count = 0; count < 30; count += 1) loudest = Math.max(loudest, await level())
  return loudest
}

/** Whether the middle of an element is visible, and not behind another one. */
function isUncovered(element: Locator): Promise<boolean> {
  return element.evaluate((found) => {
    const { x, y, width, height } = found.getBoundingClientRect()
    const top = document.elementFromPoint(x + width / 2, y + height - 2)
    return top !== null && found.contains(top)
  })
}
