import type { Content, Transcribe } from 'gemini-emulator'

/**
 * Transcribes every utterance as the next line of a fixed dialogue, because the demo does not recognise speech. The dialogue
 * includes an approval and a long reply to interrupt. Every line says that it is part of the demonstration.
 */
export function transcribeAsDialogue(language: () => 'en' | 'ja'): Transcribe {
  return ({ pcm, sampleRate }, history) => {
    const seconds = pcm.length / 2 / sampleRate
    if (seconds < SHORTEST_SECONDS) return ''
    const { lines, remark } = SCRIPTS[language()]
    const said = saidIn(history)
    const line = lines.find((text) => !said.includes(text)) ?? lines.at(-1) ?? ''
    return said.includes(remark.full) ? `${line} ${remark.brief}` : `${line} ${remark.full}`
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
    remark: {
      full: '(The emulator cannot understand speech. It takes whatever you say for a line of a demonstration.)',
      brief: '(a line of the demonstration)',
    },
  },
  ja: {
    lines: [
      '東京の天気は?',
      'Aliceに30ドル送金してください。',
      '長い話をしてください。',
      'トラック2に変更して。',
      'ありがとう!',
    ],
    remark: {
      full: '（エミュレーターは音声を聞き取れません。話した内容は、デモの台詞に置き換えられます）',
      brief: '（デモの台詞）',
    },
  },
} as const
