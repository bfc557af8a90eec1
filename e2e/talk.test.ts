import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'

import { times } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { chatPage } from './support/chat-page.ts'
import { readMusicAudio, readVoiceAudio } from './support/page-audio.ts'
import { syllables } from './support/make-wav.ts'
import { readAccount } from './support/account.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { voiceControls, openWithMicrophone, readLayoutShift } from './support/talk-page.ts'
import { findViolations } from './support/axe-violations.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo({ live: { playback: 'real-time' } })

const SILENCE = [{ hertz: 0, ms: 1_000 }]
const TURNS = times(1, 3)
const UTTERANCE = [...syllables(440, 1_000), { hertz: 0, ms: 8_000 }]
/** One second of speech for each turn, then a silence long enough that the loop does not repeat during a test. */
const SPEECH = [
  { hertz: 0, ms: 300 },
  ...Array.from({ length: TURNS }, () => UTTERANCE).flat(),
  { hertz: 0, ms: 60_000 },
]
/** How much a page may move by itself while a person talks. */
const MAX_LAYOUT_SHIFT = 0.05
const LONG_REPLY = 'This is a long answer that takes its time. '.repeat(8)

test('[DM17] [DM48] a new chat can start with hands-free speech; both sides are heard and transcribed, and the page does not move', async () => {
  for (let turn = 0; turn < TURNS; turn += 1)
    testDemo.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
  const page = await openWithMicrophone(testDemo, SPEECH)
  const { handsFree, end, waitUntilHearing, waitUntilSpeaking, waitUntilListening, waitUntilOff } =
    voiceControls(page)
  const { log, reply } = chatPage(page)
  await handsFree.click()
  await waitUntilHearing()
  await waitUntilSpeaking()
  await takeScreenshot(page, 'talk-live')
  await waitUntilListening()
  await log.locator('[data-role=user]').getByText('Good morning, Hanako').first().waitFor()
  await reply(TURNS - 1)
    .getByText('Good morning, Hanako.')
    .waitFor()
  await waitUntilListening()
  expect(await chatPage(page).replies.count()).toBe(TURNS)
  expect(await readLayoutShift(page)).toBeLessThan(MAX_LAYOUT_SHIFT)
  const { samples } = await readVoiceAudio(page)
  expect(samples).toBeGreaterThan(12_000)

  await end.click()
  await waitUntilOff()
  await page.reload()
  await reply().getByText('Good morning, Hanako.').waitFor()
  expect(await log.locator('[data-role=user]').count()).toBe(TURNS)
})

const HOLDS = [
  ['the pointer', 'pointer'],
  ['a key', 'key'],
]

longTest.each(HOLDS)(
  '[DM48] speech is sent while the button is held with %s',
  async (_name, by) => {
    testDemo.emulator.live.queueTranscript(`[[say Held by ${by}.]]`)
    const page = await openWithMicrophone(testDemo, syllables(440, 2_000))
    const { holdToTalk, waitUntilHearing, waitUntilSpeaking } = voiceControls(page)
    await holdToTalk.focus()
    await holdToTalk.hover()
    await (by === 'pointer' ? page.mouse.down() : page.keyboard.down('Space'))
    await waitUntilHearing()
    expect(await holdToTalk.getAttribute('aria-pressed')).toBe('true')
    await (by === 'pointer' ? page.mouse.up() : page.keyboard.up('Space'))
    await waitUntilSpeaking()
    await chatPage(page).reply().getByText(`Held by ${by}.`).waitFor()
    expect(await holdToTalk.getAttribute('aria-pressed')).toBe('false')
  },
)

longTest(
  '[DM26] [DM48] Escape interrupts the model, and the next message gets a spoken reply',
  async () => {
    const page = await openWithMicrophone(testDemo, SILENCE)
    const { handsFree, waitUntilSpeaking, waitUntilListening } = voiceControls(page)
    const { send, reply } = chatPage(page)
    await handsFree.click()
    await waitUntilListening()
    expect(await findViolations(page)).toEqual([])
    await send(`[[say ${LONG_REPLY}]]`)
    await waitUntilSpeaking()
    await expect.poll(() => page.locator('.adk-stop, .adk-stage-icon').count()).toBe(1)
    await expect.poll(async () => (await readVoiceAudio(page)).samples).toBeGreaterThan(2_400)
    await page.keyboard.press('Escape')
    await waitUntilListening()
    await expect.poll(async () => (await readVoiceAudio(page)).level).toBe(0)
    await send('[[say Another.]]')
    await waitUntilSpeaking()
    await reply(1).getByText('Another.').waitFor()
  },
)

// In `npm test`, voice.test.ts tests interruptions with a small page.
longTest('[DM48] [VO4] speech interrupts the model', async () => {
  testDemo.emulator.live.queueTranscript('[[say Yes?]]')
  const page = await openWithMicrophone(testDemo, [
    { hertz: 0, ms: 4_000 },
    ...syllables(440, 1_000),
    { hertz: 0, ms: 8_000 },
  ])
  const { handsFree, waitUntilSpeaking, waitUntilHearing, waitUntilListening } = voiceControls(page)
  const { send, replies } = chatPage(page)
  await handsFree.click()
  await waitUntilListening()
  await send(`[[say ${LONG_REPLY}]]`)
  await waitUntilSpeaking()
  await waitUntilHearing()
  await replies.getByText('Yes?').waitFor()
  expect(await replies.count()).toBe(2)
})

longTest(
  '[DM90] [DM48] [DM680] a payment is approved during speech on a phone, and made once',
  async () => {
    for (let turn = 1; turn < TURNS; turn += 1)
      testDemo.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
    testDemo.emulator.live.queueTranscript('Send $30 to Alice')
    const page = await openWithMicrophone(testDemo, SPEECH, {
      viewport: { width: 390, height: 740 },
    })
    const { handsFree, end } = voiceControls(page)
    const { tool } = chatPage(page)
    const account = readAccount(testDemo, page)
    await handsFree.click()
    const approve = tool('Alice').getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await takeScreenshot(page, 'talk-approval-live')
    await expect.poll(() => isUncovered(approve)).toBe(true)
    expect(await readLayoutShift(page)).toBeLessThan(MAX_LAYOUT_SHIFT)
    // The other controls are in the same row as the round button.
    const middleOf = async (part: string) => {
      const box = await page.locator(part).boundingBox()
      return box ? Math.round(box.y + box.height / 2) : undefined
    }
    const distance = async () =>
      ((await middleOf('.microphone')) ?? 0) - ((await middleOf('.adk-stage-main')) ?? 0)
    await expect.poll(distance).toBe(0)
    // In landscape and at 400 % zoom the card does not fit, so the approval is pinned.
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
    expect(await findViolations(page)).toEqual([])
    await pinnedApprove.click()
    await tool('Alice').getByText('Approved.').waitFor()
    await tool('Alice').getByText('Done').waitFor()
    expect(await end.isVisible()).toBe(true)
    expect(await account.balance()).toBe(970)
  },
)

test('[DM91] a blocked microphone is explained, and written messages still work', async () => {
  const page = await openWithMicrophone(testDemo, SILENCE, { microphone: 'denied' })
  const { handsFree, waitForStatus } = voiceControls(page)
  await handsFree.click()
  await waitForStatus('The microphone is blocked. Allow it for this page in the browser settings')
  await takeScreenshot(page, 'talk-refused-live')
  await chatPage(page).send('[[say Written, then.]]')
  await chatPage(page).reply().getByText('Written, then.').waitFor()
  expect(testDemo.countSentToModel('Written, then.')).toBe(1)
})

longTest('[DM69] the music is quieter while the model speaks', async () => {
  const page = await openWithMicrophone(testDemo, SILENCE)
  const { handsFree, waitUntilSpeaking, waitUntilListening } = voiceControls(page)
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('radio', { name: 'Track 1' }).click({ force: true })
  await page.keyboard.press('Escape')
  await handsFree.click()
  await waitUntilListening()
  const level = async (): Promise<number> => (await readMusicAudio(page)).level
  await expect.poll(level).toBeGreaterThan(0.01)
  const normal = await highestLevel(level)
  await chatPage(page).send(`[[say ${LONG_REPLY}]]`)
  await waitUntilSpeaking()
  await expect.poll(() => highestLevel(level)).toBeLessThan(normal / 2)
  await page.keyboard.press('Escape')
  await waitUntilListening()
  await expect.poll(() => highestLevel(level)).toBeGreaterThan(normal / 2)
})

/** Returns the highest of several levels, because music has rests. */
async function highestLevel(level: () => Promise<number>): Promise<number> {
  let loudest = 0
  for (let count = 0; count < 30; count += 1) loudest = Math.max(loudest, await level())
  return loudest
}

/** Returns whether the lower edge of an element is visible and not covered by another element. */
function isUncovered(element: Locator): Promise<boolean> {
  return element.evaluate((found) => {
    const { x, y, width, height } = found.getBoundingClientRect()
    const top = document.elementFromPoint(x + width / 2, y + height - 2)
    return top !== null && found.contains(top)
  })
}
