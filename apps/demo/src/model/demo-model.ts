import type { Action, Responder, Prompt } from 'gemini-emulator'
import { type Attachment, type Conversation, readConversation } from './reading/conversation.ts'
import { detectLanguage } from './reading/language.ts'
import { formatMoney } from '../format-money.ts'
import { measureImage, nameColour } from './images/measure-image.ts'
import { compareNumbers, readComparison } from './replies/compare-numbers.ts'
import { continueNotes } from './notes.ts'
import { naturalPieces, clip } from './replies/render.ts'
import { phrasesOf } from './replies/phrases.ts'
import { drawPicture } from './images/draw-picture.ts'
import { type Plan, planRequest } from './plan.ts'
import type { PlannedCall } from './schema.ts'
import { continueTrip, readTripStep } from './trip.ts'
import { allSucceeded, commentOn, lastBalance, type Style } from './replies/results.ts'
import { createSpecialReply, readSpecialReply } from './replies/special-replies.ts'
import { readPictureSubject, rememberedName, type Topic, topicOf } from './reading/small-talk.ts'
import type { Language } from '../demo-info.ts'

/** A rule-based assistant for the demo's tools, in English and Japanese. Deterministic, and needs no network. */
export const demoModel: Responder = (prompt) => {
  const conversation = readConversation(prompt.contents)
  const context: ReplyContext = {
    prompt,
    conversation,
    style: { language: detectLanguage(conversation.request), spoken: prompt.mode === 'live' },
    functions: prompt.callMode === 'NONE' ? [] : prompt.functions,
  }
  if (offers(context, 'notes_list')) return runNotes(context)
  const step = readTripStep(prompt.systemInstruction)
  if (step !== undefined) {
    const next = continueTrip(step, conversation, context.style.language)
    return ['call' in next ? toAction(next.call) : say(next.text)]
  }
  const comments = conversation.answered.length > 0 ? continueAfterResults(context) : []
  if (conversation.isRequestNew) return [...comments, ...answerRequest(context)]
  return comments.length > 0 ? comments : [say(phrasesOf(context.style.language).nothingSaid)]
}

function offers({ functions }: ReplyContext, name: string): boolean {
  return functions.some((declaration) => declaration.name === name)
}

/** The reply of the agent for notes. */
function runNotes({ conversation, style }: ReplyContext): Action[] {
  const { text, call } = continueNotes(conversation, style.language)
  const actions = [...(text === undefined ? [] : [say(text)]), ...(call ? [toAction(call)] : [])]
  return actions.length > 0 ? actions : [say(phrasesOf(style.language).nothingSaid)]
}

interface ReplyContext {
  readonly prompt: Prompt
  readonly conversation: Conversation
  readonly style: Style
  readonly functions: Prompt['functions']
}

/** Reports the results and starts the next step of the plan, unless a call failed. */
function continueAfterResults(context: ReplyContext): Action[] {
  const { conversation, style } = context
  const phrases = phrasesOf(style.language)
  const comment = commentOn(conversation, style)
  const next = nextStep(context)
  if (next.length === 0) return [say(comment)]
  if (!allSucceeded(conversation.answered))
    return [say(phrases.join([comment, phrases.notGoingOn]))]
  return [say(comment), ...next.map(toAction)]
}

/** Plans the request again and skips the calls that were made. */
function nextStep(context: ReplyContext): readonly PlannedCall[] {
  const { calls, waiting, isRequestNew } = context.conversation
  if (isRequestNew || waiting.length > 0) return []
  const plan = planFor(context)
  if (plan?.kind !== 'call') return []
  let made = 0
  for (const step of plan.steps) {
    if (made === calls.length) return step
    made += step.length
  }
  return []
}

function planFor({ conversation, functions, style }: ReplyContext): Plan | undefined {
  // The results of this request must not change its plan: "next track" refers to the state before them.
  const history = conversation.history.slice(
    0,
    conversation.history.length - conversation.calls.length,
  )
  return planRequest(conversation.request, {
    functions,
    earlierRequests: conversation.earlierRequests,
    history: conversation.isRequestNew ? conversation.history : history,
    language: style.language,
    spoken: style.spoken,
  })
}

function answerRequest(context: ReplyContext): Action[] {
  const { conversation, style, prompt } = context
  const received = acknowledge(conversation.attachments, style)
  const subject = readPictureSubject(conversation.request)
  if (subject !== undefined) return [...received, ...showPicture(subject, style)]
  const plan = planFor(context)
  const thought = thoughtOf(context)
  if (plan?.kind === 'ask') return [...received, ...thought, say(plan.question)]
  if (plan?.kind === 'call') {
    const remarks =
      plan.remarks.length === 0 ? [] : [say(phrasesOf(style.language).join(plan.remarks))]
    const [step = []] = plan.steps
    return [...received, ...thought, ...remarks, ...readBack(step, style), ...step.map(toAction)]
  }
  const show = readSpecialReply(conversation.request)
  if (show !== undefined) return [...received, ...createSpecialReply(show, style)]
  const comparison = readComparison(conversation.request)
  if (comparison) {
    const { thought: reasoning, reply } = compareNumbers(comparison, style)
    return [...received, ...(prompt.includeThoughts ? [think(reasoning)] : []), say(reply)]
  }
  const topic = topicOf(conversation.request)
  if (topic !== undefined) return [...received, ...thought, say(smallTalk(topic, context))]
  if (received.length > 0) return received
  if (conversation.request === '') return [say(phrasesOf(style.language).nothingSaid)]
  return [say(echo(conversation.request, style, prompt))]
}

/** In a voice conversation, the model says what needs approval. The user may not look at the page. */
function readBack(step: readonly PlannedCall[], { language, spoken }: Style): Action[] {
  const phrases = phrasesOf(language)
  const payments = step
    .filter(({ name }) => spoken && name === 'process_payment')
    .map(({ args: { amount, currency, recipient } }) =>
      phrases.payment({
        money: formatMoney(Number(amount), String(currency ?? 'USD'), language),
        recipient: String(recipient),
      }),
    )
  return payments.length === 0 ? [] : [say(phrases.needsApproval(payments))]
}

function thoughtOf({ conversation, style, prompt }: ReplyContext): Action[] {
  if (!prompt.includeThoughts || topicOf(conversation.request) !== 'think') return []
  return [think(phrasesOf(style.language).thought(gistOf(conversation.request)))]
}

function smallTalk(topic: Topic, { conversation, style, functions }: ReplyContext): string {
  const phrases = phrasesOf(style.language)
  const name = rememberedName([...conversation.earlierRequests, conversation.request])
  switch (topic) {
    case 'your-name':
      return phrases.yourName(name)
    case 'name-given':
      return name === undefined ? phrases.greeting(undefined) : phrases.niceToMeet(name)
    case 'leave':
      return phrases.leaveIt
    case 'balance':
      return phrases.knownBalance(lastBalance(conversation.history, style))
    case 'help':
      return phrases.help(style.spoken, examplesFor(functions, style))
    case 'identity':
      return phrases.identity
    case 'markdown':
      return style.spoken ? phrases.markdownSpoken : phrases.markdown
    case 'think':
      return phrases.reasoned(gistOf(conversation.request))
    case 'thanks':
      return phrases.thanks
    case 'goodbye':
      return phrases.goodbye
    case 'greeting':
      return phrases.greeting(name)
  }
}

function examplesFor(functions: Prompt['functions'], { language }: Style): string[] {
  const declared = new Set(functions.map(({ name }) => name))
  return phrasesOf(language).examples.flatMap(({ tool, text }) =>
    declared.has(tool) ? [text] : [],
  )
}

function echo(request: string, style: Style, { functions }: Prompt): string {
  const phrases = phrasesOf(style.language)
  const [example] = examplesFor(functions, style)
  return phrases.echo(gistOf(request), example ?? phrases.examples.at(-1)?.text ?? '')
}

function showPicture(subject: string, { language }: Style): Action[] {
  return [
    { type: 'image', mimeType: 'image/png', data: drawPicture(subject) },
    say(phrasesOf(language).picture(clip(subject, LONGEST_GIST))),
  ]
}

function acknowledge(attachments: readonly Attachment[], { language, spoken }: Style): Action[] {
  // Live audio is the request itself and is already transcribed.
  const files = attachments.filter(({ mimeType }) => !(spoken && mimeType.startsWith('audio/')))
  return files.length === 0
    ? []
    : [say(phrasesOf(language).received(files.map((file) => nameOf(file, language))))]
}

function nameOf({ mimeType, data }: Attachment, language: Language): string {
  const type = clip(mimeType, 60)
  if (data === undefined) return type
  const file = Buffer.from(data, 'base64')
  const look = mimeType.startsWith('image/') ? measureImage(file) : undefined
  const facts = [
    file.length < 1024 ? `${String(file.length)} B` : `${(file.length / 1024).toFixed(1)} kB`,
    ...(look ? [`${String(look.width)} × ${String(look.height)}`] : []),
    ...(look?.colour ? [phrasesOf(language).mostly(nameColour(look.colour, language))] : []),
  ]
  return `${type} (${facts.join(', ')})`
}

const LONGEST_GIST = 80

function gistOf(request: string): string {
  return clip(request, LONGEST_GIST)
}

function say(text: string): Action {
  return { type: 'say', text, pieces: naturalPieces(text) }
}

function think(text: string): Action {
  return { type: 'think', text, pieces: naturalPieces(text) }
}

function toAction({ name, args }: PlannedCall): Action {
  return { type: 'call', name, args }
}
