import type { Content, Transcribe } from 'gemini-emulator'
import type { Language } from '../../demo-info.ts'

/**
 * Transcribes every utterance as the next line of a fixed dialogue, because the demo does not recognise speech. The dialogue
 * includes an approval and a long reply to interrupt. Every line says that it is part of the demonstration.
 */
export function transcribeAsDialogue(language: () => Language): Transcribe {
  return ({ pcm, sampleRate }, history) => {
    const seconds = pcm.length / 2 / sampleRate
    if (seconds < SHORTEST_SECONDS) return ''
    const { lines, remark } = SCRIPTS[language()]
    const said = saidIn(history)
    const line = lines.find((text) => !said.includes(text)) ?? lines.at(-1) ?? ''
    return `${line} ${remark}`
  }
}

/** A shorter utterance, including the silence around it, is a cough or a click. */
const SHORTEST_SECONDS = 0.95

function saidIn(history: readonly Content[]): string {
  return history
    .flatMap(({ parts }) => parts ?? [])
    .map(({ text }) => text ?? '')
    .join('\n')
}

const SCRIPTS = {
  en: {
    lines: [
      'What is the weather in Tokyo?',
      'Send $30 to Alice.',
      'Give me a long answer.',
      'Change the music to track 2.',
      'Thank you!',
    ],
    remark: '(demo line)',
  },
  ja: {
    lines: [
      '東京の天気は?',
      'Aliceに30ドル送金してください。',
      '長い話をしてください。',
      'トラック2に変更して。',
      'ありがとう!',
    ],
    remark: '（デモの台詞）',
  },
} as const
