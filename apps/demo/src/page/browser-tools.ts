import { z } from 'zod'

import { music } from './music/music.ts'

/** The browser tools of this page. If one throws, the model receives the error message. */
export const BROWSER_TOOLS = { get_location: getLocation, change_bgm: changeBgm }

const TIMEOUT_MS = 15_000

/** Returns the position of the browser, which asks the person for permission. */
function getLocation(): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy } }) => resolve({ latitude, longitude, accuracy }),
      ({ code }) => reject(new BrowserToolError(explain(code))),
      { timeout: TIMEOUT_MS, maximumAge: 60_000 },
    )
  })
}

/** Returns why there is no position. The card shows it to the person, and the model receives it too. */
function explain(code: number): string {
  const texts = TEXTS[document.documentElement.lang === 'ja' ? 'ja' : 'en']
  switch (code) {
    case GeolocationPositionError.PERMISSION_DENIED:
      return isSecureContext ? texts.blocked : texts.insecure
    case GeolocationPositionError.TIMEOUT:
      return texts.late
    default:
      return texts.unknown
  }
}

const TEXTS = {
  en: {
    blocked:
      "Location is blocked for this page. Allow it in your browser's site settings, then ask again.",
    insecure: 'Browsers give the location only to pages with HTTPS, and on the machine itself.',
    late: 'Your browser did not find the location in time. Try again in a moment.',
    unknown: 'Your browser cannot determine the location.',
  },
  ja: {
    blocked:
      'このページでは位置情報がブロックされています。ブラウザーのサイト設定で許可してから、もう一度お試しください。',
    insecure:
      'ブラウザーが位置情報を渡すのは、HTTPSのページと、このサーバーを動かしているマシンのページだけです。',
    late: '時間内に位置情報を取得できませんでした。少し待ってからもう一度お試しください。',
    unknown: 'ブラウザーで位置情報を取得できません。',
  },
}

const Input = z.object({ track: z.union([z.literal(1), z.literal(2)]) })

/** Plays another track. */
async function changeBgm(input: unknown): Promise<Record<string, unknown>> {
  const parsed = Input.safeParse(input)
  if (!parsed.success) throw new BrowserToolError('There is a track 1 and a track 2, and no other.')
  const { track } = parsed.data
  await music.play(track)
  return { success: true, track }
}

/** A browser tool failed. The model receives the message. */
class BrowserToolError extends Error {
  override readonly name = 'BrowserToolError'
}
