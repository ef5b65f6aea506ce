"""Training: what people learn from before they judge, and how it goes with them."""

from dataclasses import replace
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from judging import lessons
from judging.access import ASSESSOR as JUDGES
from judging.api.base import ASSESSOR, ORGANIZER, CampaignView, page
from judging.api.fields import Body, Flag, NoBody, Number, Whole, checked
from judging.api.gold import GoldBody, pairs_of
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers_training import LearnedRow, LessonRow, TrainingPairRow, TrainingRow
from judging.lessons import Lesson
from judging.models import TrainingPair
from judging.services import training
from judging.services.training import TrainingPlan
from judging.sheets import document


class TrainingPairs(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(TrainingPairRow))
    def get(self, request: Request, slug: str) -> Response:
        """Pairs with known grades that new assessors learn from, and how they were answered."""
        return page(request, lessons.lines(self.campaign), TrainingPairRow)

    @extend_schema(request=GoldBody, responses={201: TrainingPairRow(many=True)})
    def post(self, request: Request, slug: str) -> Response:
        """Add all of them, or none: `errors` name what is wrong, by place from 1."""
        found, problems = pairs_of(self.campaign, request.data)
        made = training.add(campaign=self.campaign, by=self.user, found=found, problems=problems)
        pks = {row.pk for row in made}
        rows = [line for line in lessons.lines(self.campaign) if line.pair.pk in pks]
        return Response(TrainingPairRow(rows, many=True).data, 201)


class OneTrainingPair(CampaignView):
    section = "People"
    access = {"DELETE": ORGANIZER}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, training_pair: int) -> Response:
        """Take it out, with what was said of it. Tries that have ended keep their result."""
        row = get_object_or_404(TrainingPair, campaign=self.campaign, pk=training_pair)
        training.remove(pair=row, by=self.user)
        return Response(status=204)


class TrainingBody(Body):
    """What is left out stays as it is."""

    obligatory = Flag(required=False, help_text="New assessors pass it before they judge.")
    threshold = Number(required=False, help_text="Share of the pairs that must be right.")
    tries = Whole(required=False, help_text="0: as many as they like.")


class TrainingOfCampaign(CampaignView):
    section = "People"
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER}

    @extend_schema(responses=TrainingRow)
    def get(self, request: Request, slug: str) -> Response:
        """What is asked of new assessors, and how far everybody is who learns."""
        return self.told()

    @extend_schema(request=TrainingBody, responses=TrainingRow)
    def patch(self, request: Request, slug: str) -> Response:
        """Ask something else from now on. Whoever has judged something goes on as before."""
        given = checked(TrainingBody, request.data)
        now = lessons.training_of(self.campaign)
        plan = replace(TrainingPlan(now.obligatory, now.threshold, now.tries), **given)
        training.set_plan(campaign=self.campaign, by=self.user, plan=plan)
        return self.told()

    def told(self) -> Response:
        row: Any = lessons.training_of(self.campaign)
        row.learners = lessons.learners(self.campaign)
        return Response(TrainingRow(row).data)


class AdmitLearner(CampaignView):
    section = "People"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=TrainingRow)
    def post(self, request: Request, slug: str, person: int) -> Response:
        """Let an assessor judge without having passed the training."""
        checked(NoBody, request.data)
        member = get_object_or_404(self.campaign.memberships, user__pk=person, role=JUDGES)
        training.admit(membership=member, by=self.user)
        row: Any = lessons.training_of(self.campaign)
        row.learners = lessons.learners(self.campaign)
        return Response(TrainingRow(row).data)


class LearnView(CampaignView):
    section = "Judging"

    def shown(self, lesson: Lesson) -> Response:
        found: Any = LessonRow(lesson).data
        if lesson.pair is not None:
            text = document(lesson.pair.docno, self.campaign).first()
            found["document"] = {"title": text.title, "text": text.text} if text else None
        return Response(found)


class BeginLesson(LearnView):
    access = {"POST": ASSESSOR}

    @extend_schema(request=None, responses=LessonRow)
    def post(self, request: Request, slug: str) -> Response:
        """Begin the training, or go on: the next pair to answer."""
        checked(NoBody, request.data)
        return self.shown(training.begin(campaign=self.campaign, by=self.user))


class LearnedBody(Body):
    pair = Whole(min_value=1, help_text="The `id` of the pair.")
    grade = Whole(min_value=0)


class AnswerLesson(LearnView):
    access = {"POST": ASSESSOR}

    @extend_schema(request=LearnedBody, responses=LearnedRow)
    def post(self, request: Request, slug: str) -> Response:
        """Answer a training pair, and learn what is right. The first answer is the one."""
        given = checked(LearnedBody, request.data)
        said: Any = training.answer(campaign=self.campaign, by=self.user, **given)
        said.lesson = lessons.lesson(self.campaign, self.user)
        return Response(LearnedRow(said).data)


class LessonNow(LearnView):
    access = {"GET": ASSESSOR}

    @extend_schema(responses=LessonRow)
    def get(self, request: Request, slug: str) -> Response:
        """How far you are with the training, and what to answer next."""
        return self.shown(lessons.lesson(self.campaign, self.user))
