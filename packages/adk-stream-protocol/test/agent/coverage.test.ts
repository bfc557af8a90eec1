import type { Event, EventActions } from '@google/adk'
import type { Part } from '@google/genai'
import { expect, test } from 'vitest'

/**
 * Every field that ADK and Gemini can send, with the rule by which the client receives it, or the reason why it does not. A field that a new
 * version adds makes these tables fail to compile.
 */
type Fields<T> = Record<Exclude<keyof T, symbol>, `sent: ${string}` | `not sent: ${string}`>

const EVENT_FIELDS: Fields<Event> = {
  content: 'sent: MP1–MP5',
  groundingMetadata: 'sent: MP6',
  citationMetadata: 'sent: MP6',
  partial: 'sent: MP1',
  errorCode: 'sent: ER2',
  errorMessage: 'sent: ER2',
  usageMetadata: 'sent: CH7',
  finishReason: 'sent: CH8',
  inputTranscription: 'sent: MP9',
  outputTranscription: 'sent: MP9',
  modelVersion: 'sent: CH2',
  author: 'sent: MP7',
  branch: 'sent: MP7',
  actions: 'sent: MP8',
  longRunningToolIds: 'sent: CH8',
  output: 'sent: MP8',
  interrupted: 'sent: TU7',
  id: 'not sent: ADK gives every partial an id of its own, so it names nothing a client sees',
  invocationId: 'not sent: the turn has its own id',
  timestamp: 'not sent: clients have their own clock',
  turnComplete: 'not sent: the end of the run ends the turn',
  customMetadata: 'not sent: belongs to the agent’s author',
  liveSessionResumptionUpdate: 'not sent: a secret of the connection to Gemini',
  goAway: 'not sent: a matter of the connection to Gemini',
  liveSessionId: 'not sent: a matter of the connection to Gemini',
  interactionId: 'not sent: a matter of the connection to Gemini',
  route: 'not sent: how a workflow goes on inside',
  nodeInfo: 'not sent: how a workflow goes on inside',
  isolationScope: 'not sent: how a workflow goes on inside',
}

const ACTION_FIELDS: Fields<EventActions> = {
  stateDelta: 'sent: MP8',
  artifactDelta: 'sent: MP8',
  transferToAgent: 'sent: MP7',
  requestedToolConfirmations: 'sent: AP0, from the call that ADK makes of it',
  requestedAuthConfigs: 'not sent: holds client secrets',
  skipSummarization: 'not sent: addressed to the runner',
  escalate: 'not sent: addressed to the runner',
  agentState: 'not sent: internal to the agent',
  endOfAgent: 'not sent: internal to the agent',
}

const PART_FIELDS: Fields<Part> = {
  text: 'sent: MP1',
  thought: 'sent: MP2',
  functionCall: 'sent: MP3',
  functionResponse: 'sent: MP3',
  inlineData: 'sent: MP4',
  fileData: 'sent: MP4',
  executableCode: 'sent: MP5',
  codeExecutionResult: 'sent: MP5',
  thoughtSignature: 'not sent: opaque, addressed to Gemini; it stays in the session',
  toolCall: 'not sent: Gemini runs it on its side; its answer comes as text and grounding',
  toolResponse: 'not sent: Gemini runs it on its side; its answer comes as text and grounding',
  audioTranscription: 'not sent: ADK gives transcriptions as fields of the event',
  videoMetadata: 'not sent: describes input',
  mediaResolution: 'not sent: describes input',
  mediaProcessing: 'not sent: describes input',
  partMetadata: 'not sent: belongs to the agent’s author',
  speechMetadata: 'not sent: describes input to speech synthesis',
}

test('[MP10] every field of an event, its actions and its parts reaches the client or is left out deliberately', () => {
  const notes = [EVENT_FIELDS, ACTION_FIELDS, PART_FIELDS].flatMap((fields) =>
    Object.values(fields),
  )
  for (const note of notes) expect(note).toMatch(/^(?:sent: [A-Z]{2}\d|not sent: \w)/)
})
